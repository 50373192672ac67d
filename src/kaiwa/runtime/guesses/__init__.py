"""Guesses at the next tokens, which the engine checks several at a time."""
