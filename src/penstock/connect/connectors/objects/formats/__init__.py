"""How records lie in an object: lines of JSON, Avro containers, Parquet tables, plain bytes."""
