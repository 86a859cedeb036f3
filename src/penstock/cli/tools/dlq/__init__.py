"""penstock dlq: list, show and replay dead letters."""
