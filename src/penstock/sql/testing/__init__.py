"""Scripts of SQL that test themselves, in memory: records in, queries, records out."""
