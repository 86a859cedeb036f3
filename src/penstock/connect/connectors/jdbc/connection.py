"""One connection to a database, the same for all products: questions, tables, columns, commits."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.connect.connectors.jdbc.addresses import DatabaseAddress, Product
from penstock.connect.connectors.jdbc.dialects import Dialect

_CONNECT_S = 20
_TABLES = {
    Product.POSTGRESQL: "SELECT table_name FROM information_schema.tables WHERE table_schema ="
    " ANY (current_schemas(false)) AND table_type = 'BASE TABLE' ORDER BY 1",
    Product.MYSQL: "SELECT table_name FROM information_schema.tables WHERE table_schema ="
    " DATABASE() AND table_type = 'BASE TABLE' ORDER BY 1",
    Product.SQLITE: "SELECT name FROM sqlite_master WHERE type = 'table'"
    " AND name NOT LIKE 'sqlite_%' ORDER BY 1",
}
_LOST_STATES = ("08", "57P", "HYT")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column of a table or of an answer."""

    name: str
    type: str  # The product's word, in lower case.
    scale: int | None  # Of decimals; None: not told.
    precision: int | None
    is_nullable: bool


class DatabaseLink:
    """A connection whose statements are in a transaction until `commit`."""

    def __init__(self, address: DatabaseAddress, user: str | None, password: str | None) -> None:
        self.address = address
        self.dialect = Dialect(address.product)
        self._connection = _opened(address, user, password)

    def close(self) -> None:
        """Hang up; what is not committed is forgotten."""
        with suppress(Exception):
            self._connection.close()

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run one statement; how many rows it changed."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement, tuple(values)) if values else cursor.execute(statement)
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        cursor = self._connection.cursor()
        try:
            cursor.executemany(statement, [tuple(row) for row in rows])
        finally:
            cursor.close()

    def ask(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of an answer."""
        return self.ask_named(question, values)[1]

    def ask_named(
        self, question: str, values: Sequence[Any] = (), limit: int | None = None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Names of columns and rows, of which at most `limit` are fetched."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(question, tuple(values)) if values else cursor.execute(question)
            names = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchall() if limit is None else cursor.fetchmany(limit)
            return names, [tuple(row) for row in rows]
        finally:
            cursor.close()

    def stream(self, question: str, values: Sequence[Any], size: int) -> "FetchedRows":
        """An answer that may be larger than memory; nothing else is asked until it is closed."""
        if self.address.product is Product.POSTGRESQL:
            cursor = self._connection.cursor(name="rows")
        elif self.address.product is Product.MYSQL:
            from pymysql.cursors import SSCursor

            cursor = self._connection.cursor(SSCursor)
        else:
            cursor = self._connection.cursor()
        cursor.execute(question, tuple(values)) if values else cursor.execute(question)
        return FetchedRows(cursor, size, self.address.product)

    def commit(self) -> None:
        """Keep what was done."""
        self._connection.commit()

    def rollback(self) -> None:
        """Forget what was done since the last commit."""
        self._connection.rollback()

    def tables(self) -> list[str]:
        """The names of all tables of the database."""
        found = [str(row[0]) for row in self.ask(_TABLES[self.address.product])]
        self.commit()
        return found

    def columns(self, table: str) -> list[TableColumn]:
        """The columns of a table; none: there is no such table."""
        if self.address.product is Product.SQLITE:
            return list(self._sqlite_columns(table))
        schema, _, name = table.rpartition(".")
        current = "DATABASE()" if self.address.product is Product.MYSQL else "current_schema()"
        place = "%s" if schema else current
        rows = self.ask(
            "SELECT column_name, data_type, numeric_scale, numeric_precision, is_nullable"
            f" FROM information_schema.columns WHERE table_schema = {place} AND table_name = %s"
            " ORDER BY ordinal_position",
            (schema, name) if schema else (name,),
        )
        return [
            TableColumn(
                name=row[0],
                type=str(row[1]).lower(),
                scale=row[2],
                precision=row[3],
                is_nullable=row[4] == "YES",
            )
            for row in rows
        ]

    def _sqlite_columns(self, table: str) -> Iterator[TableColumn]:
        for row in self.ask(f"PRAGMA table_info({self.dialect.quoted(table)})"):
            kind = str(row[2]).lower().partition("(")[0].strip()
            kind = "bigint" if "int" in kind else kind  # Whatever its name, it has 64 bits.
            is_nullable = not row[3] and not row[5]
            yield TableColumn(
                name=row[1], type=kind, scale=None, precision=None, is_nullable=is_nullable
            )


class FetchedRows:
    """Rows as they are fetched, so many at a time."""

    def __init__(self, cursor: Any, size: int, product: Product) -> None:
        self._cursor = cursor
        self._size = size
        told = cursor.description or ()
        # Names of columns with the words for their types; None: the library tells none.
        self.described = [(str(one[0]), _word(product, one[1])) for one in told]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        try:
            while rows := self._cursor.fetchmany(self._size):
                yield from (tuple(row) for row in rows)
        finally:
            self.close()

    def close(self) -> None:
        """The rest is not wanted."""
        with suppress(Exception):
            self._cursor.close()


def _word(product: Product, code: Any) -> str | None:
    """The word for a type that a library has as a number."""
    if product is Product.SQLITE:
        return None
    if product is Product.MYSQL:
        return _MYSQL_WORDS.get(code, "text")
    import psycopg

    found = psycopg.adapters.types.get(code)
    return "text" if found is None else found.name


# By the codes of the protocol. Texts and binary strings share theirs, so both come as texts.
_MYSQL_WORDS = {
    1: "tinyint", 2: "smallint", 3: "int", 4: "float", 5: "double", 7: "timestamp", 8: "bigint",
    9: "mediumint", 10: "date", 11: "time", 12: "datetime", 13: "year", 246: "numeric",
}  # fmt: skip


def is_lost(error: Exception) -> bool:
    """Whether a connection failed or the server was busy, so that another try may succeed."""
    name = type(error).__name__
    state = str(getattr(error, "sqlstate", None) or "")
    if state:
        return state.startswith(_LOST_STATES) or state in ("40001", "40P01")
    if isinstance(error, sqlite3.OperationalError):
        return "locked" in str(error) or "busy" in str(error)
    code = error.args[0] if error.args and isinstance(error.args[0], int) else None
    if code is not None:  # PyMySQL's: gone away, refused, deadlock, time for a lock is over.
        return code in (0, 1040, 1053, 1205, 1213, 2002, 2003, 2006, 2013, 2014, 2055, 4031)
    return name in ("OperationalError", "InterfaceError")


def _opened(address: DatabaseAddress, user: str | None, password: str | None) -> Any:
    if address.product is Product.SQLITE:
        return sqlite3.connect(address.name, timeout=_CONNECT_S, check_same_thread=False)
    if address.product is Product.POSTGRESQL:
        import psycopg

        return psycopg.connect(
            host=address.host,
            port=address.port,
            dbname=address.name,
            user=user or address.options.get("user"),
            password=password or address.options.get("password"),
            sslmode=address.options.get("sslmode", "prefer"),
            connect_timeout=_CONNECT_S,
            options="-c timezone=UTC",
        )
    import pymysql

    return pymysql.connect(
        host=address.host,
        port=address.port,
        database=address.name,
        user=user or address.options.get("user"),
        password=password or address.options.get("password") or "",
        charset="utf8mb4",
        connect_timeout=_CONNECT_S,
        init_command="SET time_zone = '+00:00'",
    )
