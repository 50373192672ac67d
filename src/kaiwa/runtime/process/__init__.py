"""A model in a process of its own."""
