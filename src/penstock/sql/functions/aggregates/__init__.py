"""Aggregate functions: many rows, one value."""
