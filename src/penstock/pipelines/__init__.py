"""Pipelines: a Python file of data frame functions, run and watched by a supervisor."""
