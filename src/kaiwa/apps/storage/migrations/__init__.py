"""How the tables came to be, step by step, for Alembic."""

HEAD = "0001"
"""The newest of `versions`."""
