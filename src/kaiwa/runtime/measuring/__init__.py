"""How fast and how exact a model is here."""
