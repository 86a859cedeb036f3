"""What connectors of change data capture share: Debezium's envelope, its types and its choices."""
