"""Topics as lake tables: Delta, Iceberg and Parquet, exactly once."""
