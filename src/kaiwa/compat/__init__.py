"""Other people's words for what Kaiwa does: code that was written for them runs with its import changed."""
