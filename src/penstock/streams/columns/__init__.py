"""Column expressions: what is known of a record's columns, computed in Python or as Spark SQL."""
