"""The Hugging Face Hub: what a repository holds, which of its files make a model, and how they are fetched and kept."""
