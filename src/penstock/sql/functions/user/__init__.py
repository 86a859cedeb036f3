"""Functions that users write in Python: declared by decorators, read from a directory."""
