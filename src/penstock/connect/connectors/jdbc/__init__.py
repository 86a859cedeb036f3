"""Tables into topics and topics into tables, by queries: PostgreSQL, MariaDB, MySQL and SQLite.

Names of settings are those of Confluent's JDBC connectors; addresses are written as JDBC's.
"""
