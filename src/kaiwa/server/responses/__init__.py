"""OpenAI's responses: items in, items out, and what is kept for the next turn."""
