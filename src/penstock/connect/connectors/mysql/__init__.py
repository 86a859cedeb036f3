"""Change data capture of MariaDB and MySQL: a snapshot of tables, then their binary log.

Debezium's names: `io.debezium.connector.mariadb.MariaDbConnector` and `...mysql.MySqlConnector`.
"""
