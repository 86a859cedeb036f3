"""Scalar functions, a module for each subject."""
