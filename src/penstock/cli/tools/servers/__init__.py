"""Commands that start and stop brokers, or run a tool by its class name."""
