"""Streaming SQL: ksqlDB's language."""
