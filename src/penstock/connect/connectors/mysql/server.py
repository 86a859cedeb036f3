"""What a capture asks its server in SQL: what it is, its tables, and where its log ends."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pymysql
from pymysql.cursors import DictCursor

from penstock.connect.connectors.mysql.column_types import ColumnFacts
from penstock.connect.connectors.mysql.positions import BinlogPosition
from penstock.connect.connectors.mysql.settings import BinlogSettings
from penstock.connect.connectors.mysql.shapes import facts_of_catalog
from penstock.connect.errors.kinds import ConnectError

_OWN = ("information_schema", "mysql", "performance_schema", "sys")
_COLUMNS = (
    "SELECT column_name AS column_name, data_type AS data_type, column_type AS column_type,"
    " is_nullable AS is_nullable, character_set_name AS character_set_name,"
    " character_maximum_length AS character_maximum_length, numeric_precision AS numeric_precision,"
    " numeric_scale AS numeric_scale, datetime_precision AS datetime_precision"
    " FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
    " ORDER BY ordinal_position"
)
_KEY = (
    "SELECT column_name AS name FROM information_schema.key_column_usage WHERE table_schema = %s"
    " AND table_name = %s AND constraint_name = 'PRIMARY' ORDER BY ordinal_position"
)
_WANTED = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL",
           "binlog_row_metadata": "FULL"}  # fmt: skip


class MyServer:
    """One connection for questions."""

    def __init__(self, settings: BinlogSettings) -> None:
        self._settings = settings
        self._connection: Any = pymysql.connect(
            **settings.connection(), autocommit=True, cursorclass=DictCursor
        )
        self.run("SET time_zone = '+00:00'")

    def close(self) -> None:
        """Hang up."""
        with suppress(pymysql.Error):
            self._connection.close()

    def run(self, statement: str, values: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
        """The rows of one statement."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())

    def cursor(self, kind: type) -> Any:
        """A cursor of another kind."""
        return self._connection.cursor(kind)

    def troubles(self) -> list[str]:
        """Why this server cannot be captured, a sentence for each setting of it."""
        found = []
        for name, wanted in _WANTED.items():
            told = self.run("SHOW GLOBAL VARIABLES LIKE %s", (name,))
            value = str(told[0]["Value"]) if told else "not known to this version"
            if value.upper() not in (wanted, "1" if wanted == "ON" else wanted):
                found.append(f"The server's {name} must be {wanted}; it is {value}.")
        return found

    def tables(self) -> list[tuple[str, str]]:
        """The captured tables, in the order of their names."""
        rows = self.run(
            "SELECT table_schema AS db, table_name AS name FROM information_schema.tables"
            " WHERE table_type = 'BASE TABLE' AND table_schema NOT IN %s ORDER BY 1, 2",
            (_OWN,),
        )
        has_table = self._settings.choice.has_table
        return [(one["db"], one["name"]) for one in rows if has_table(one["db"], one["name"])]

    def columns(self, database: str, table: str) -> list[ColumnFacts]:
        """The columns of a table as they are now."""
        return [facts_of_catalog(row) for row in self.run(_COLUMNS, (database, table))]

    def key(self, database: str, table: str) -> list[str]:
        """The columns of the primary key."""
        return [str(row["name"]) for row in self.run(_KEY, (database, table))]

    def end(self) -> BinlogPosition:
        """Where the log ends now."""
        try:
            told = self.run("SHOW MASTER STATUS")
        except pymysql.err.ProgrammingError:
            told = self.run("SHOW BINARY LOG STATUS")  # MySQL from 8.4 on.
        if not told:
            raise ConnectError("The server writes no binary log (log_bin).")
        return _position(told[0])

    def has_log(self, file: str) -> bool:
        """Whether a file of the log is still there."""
        return any(row["Log_name"] == file for row in self.run("SHOW BINARY LOGS"))

    def begin_snapshot(self) -> BinlogPosition:
        """A transaction that sees all tables as they are at one place of the log; that place."""
        begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
        self.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.run(begin)
        told = {r["Variable_name"]: r["Value"] for r in self.run("SHOW STATUS LIKE %s", (_AT,))}
        if told.get("Binlog_snapshot_file"):  # MariaDB knows it without a lock.
            file, pos = told["Binlog_snapshot_file"], told["Binlog_snapshot_position"]
            return BinlogPosition(file=file, pos=int(pos), is_snapshot=True)
        self.run("FLUSH TABLES WITH READ LOCK")
        try:
            self.run(begin)
            end = self.end()
        finally:
            self.run("UNLOCK TABLES")
        return BinlogPosition(file=end.file, pos=end.pos, is_snapshot=True)


_AT = "Binlog\\_snapshot\\_%"


def _position(row: Mapping[str, Any]) -> BinlogPosition:
    return BinlogPosition(file=row["File"], pos=int(row["Position"]))
