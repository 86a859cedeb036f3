"""Committed offsets of groups: kept, committed, deleted and expired."""
