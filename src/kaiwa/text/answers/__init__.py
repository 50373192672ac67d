"""From token ids as they come to text, thoughts and calls of tools."""
