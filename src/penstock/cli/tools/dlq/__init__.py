"""penstock dlq: list, show, edit and redrive dead letters."""
