"""Kafka's client metrics out of librdkafka's statistics."""
