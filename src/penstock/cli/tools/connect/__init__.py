"""Kafka Connect's worker, alone or in a group."""
