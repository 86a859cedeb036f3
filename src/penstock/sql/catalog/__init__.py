"""What exists: streams, tables, types, queries, properties, variables; as frozen values."""
