"""Anthropic's messages: the request, its answer whole and as events, and the endpoints."""
