"""Models by name, each loaded once for everybody who asks."""
