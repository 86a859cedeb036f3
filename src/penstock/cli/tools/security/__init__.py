"""Tools for access rules."""
