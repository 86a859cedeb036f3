"""Penstock: event streaming in Python that any Kafka client takes for Kafka."""

__version__ = "0.1.0"
