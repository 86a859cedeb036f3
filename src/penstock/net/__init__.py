"""Frames over TCP: the listener that serves them. Knows sockets and sizes, nothing of Kafka."""
