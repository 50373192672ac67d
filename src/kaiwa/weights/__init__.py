"""From model files on disk to named tensors, and from model names to files.

`hub` leads from a name to a path, `open` from a path to a `checkpoint`: configuration and tensors in Hugging Face's
words, still in their number `formats` and still in the file.
"""
