"""A conversation, whoever shows it."""
