"""The log engine: Kafka's on-disk format, byte for byte, without an event loop."""
