"""From a model's name to its parts in memory."""
