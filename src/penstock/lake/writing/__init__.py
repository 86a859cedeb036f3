"""One batch on its way into a table: ranges, files, commit."""
