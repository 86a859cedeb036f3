"""Whole batches of rows in Arrow columns: the same meaning as row by row, or the row is left."""
