"""The controller: elected, fenced, and all that it changes."""
