"""Kafka's predicates: which records a transform is for."""
