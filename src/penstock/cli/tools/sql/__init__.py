"""Streaming SQL on the command line."""
