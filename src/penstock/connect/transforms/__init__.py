"""Kafka's transforms of single messages, one file each; a chain of them is in `chain`."""
