"""The engine for what the built-in one does not run: every architecture that transformers knows, on its devices."""
