"""Statements against the catalog: what they mean, with types, or why they are refused."""
