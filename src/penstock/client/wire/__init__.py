"""Our own wire client: connections, raw batches, transactions step by step, TLS and SASL."""
