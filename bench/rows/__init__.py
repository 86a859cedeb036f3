"""The rows of the table, one module per kind of work; each gives rows from a plan and subjects."""
