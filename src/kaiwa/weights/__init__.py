"""From model files on disk to named tensors, and from model names to files."""
