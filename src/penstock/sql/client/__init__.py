"""A client of a SQL service: statements, queries as typed rows, inserts, over plain HTTP."""
