"""The HTTP server: other people's APIs in front of Kaiwa's models."""
