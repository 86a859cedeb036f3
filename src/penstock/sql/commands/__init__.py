"""Statements that change something: what each makes of the catalog, and which queries it starts."""
