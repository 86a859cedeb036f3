"""The interactive shell of streaming SQL."""
