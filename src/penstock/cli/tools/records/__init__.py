"""Commands that write, read, delete and find records."""
