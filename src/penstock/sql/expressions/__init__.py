"""Expressions compiled: a type known before any row is, and a function from row to value."""
