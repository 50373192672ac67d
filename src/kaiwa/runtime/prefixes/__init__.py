"""What the engine has already read, kept for prompts that begin like it."""
