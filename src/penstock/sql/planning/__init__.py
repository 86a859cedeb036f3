"""Queries onto Streams: a logical query becomes a topology, whose steps and state are Streams'."""
