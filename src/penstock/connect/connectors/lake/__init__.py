"""Topics into lake tables (Delta, Iceberg, Parquet) by the commits of `penstock.lake`."""
