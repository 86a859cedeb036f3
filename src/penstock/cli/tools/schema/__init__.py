"""Schemas in a registry."""
