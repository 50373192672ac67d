"""Many requests, one engine."""
