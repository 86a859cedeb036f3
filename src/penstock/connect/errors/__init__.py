"""What can go wrong with a record, and what becomes of it: retried, skipped, put aside, fatal."""
