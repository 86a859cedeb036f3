"""Compaction: which log, which records stay, and the process that rewrites the segments."""
