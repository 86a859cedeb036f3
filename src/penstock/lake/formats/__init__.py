"""The table formats: Delta, Iceberg and plain Parquet."""
