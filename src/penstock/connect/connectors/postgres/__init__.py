"""PostgreSQL into topics: a snapshot of tables, then every committed change, exactly once.

Changes come through logical replication with PostgreSQL's own plug-in, pgoutput. Names of settings,
records and schemas are Debezium's.
"""
