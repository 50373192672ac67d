"""OpenAI's chat completions: the request, its answer whole and in pieces, and the endpoint."""
