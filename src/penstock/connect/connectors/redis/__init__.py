"""Redis: streams into topics, and records as keys, hashes, lists, sets and streams.

The settings are those of Redis' own connectors. The library is redis; `client.py` alone knows it.
"""
