"""Records into columns: types, rows, and what does not fit."""
