"""The built-in CPU engine: a model family's program, recorded once in Python and replayed in C++."""
