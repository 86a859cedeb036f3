"""Kafka Streams' words: what is called otherwise here, and what is not there, with the reason."""
