"""What differs between databases in words: quotes, types, upserts. Nothing is run here."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.connect.connectors.jdbc.addresses import Product
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.values.logical import DATE, DECIMAL, TIME, TIMESTAMP, scale_of
from penstock.connect.values.schema import Schema, SchemaType

_T = SchemaType
_TYPES: dict[Product, dict[SchemaType, str]] = {
    Product.POSTGRESQL: {
        _T.INT8: "SMALLINT", _T.INT16: "SMALLINT", _T.INT32: "INT", _T.INT64: "BIGINT",
        _T.FLOAT32: "REAL", _T.FLOAT64: "DOUBLE PRECISION", _T.BOOLEAN: "BOOLEAN",
        _T.STRING: "TEXT", _T.BYTES: "BYTEA",
    },
    Product.MYSQL: {
        _T.INT8: "TINYINT", _T.INT16: "SMALLINT", _T.INT32: "INT", _T.INT64: "BIGINT",
        _T.FLOAT32: "FLOAT", _T.FLOAT64: "DOUBLE", _T.BOOLEAN: "TINYINT",
        _T.STRING: "TEXT", _T.BYTES: "VARBINARY(1024)",
    },
    Product.SQLITE: {
        _T.INT8: "INTEGER", _T.INT16: "INTEGER", _T.INT32: "INTEGER", _T.INT64: "INTEGER",
        _T.FLOAT32: "REAL", _T.FLOAT64: "REAL", _T.BOOLEAN: "INTEGER",
        _T.STRING: "TEXT", _T.BYTES: "BLOB",
    },
}  # fmt: skip
_LOGICAL: dict[Product, dict[str, str]] = {
    Product.POSTGRESQL: {DATE: "DATE", TIME: "TIME", TIMESTAMP: "TIMESTAMP", DECIMAL: "DECIMAL"},
    Product.MYSQL: {
        DATE: "DATE",
        TIME: "TIME(3)",
        TIMESTAMP: "DATETIME(3)",
        DECIMAL: "DECIMAL(65,{})",
    },
    Product.SQLITE: {DATE: "TEXT", TIME: "TEXT", TIMESTAMP: "TEXT", DECIMAL: "NUMERIC"},
}
_KEY_TEXT = {Product.MYSQL: "VARCHAR(256)"}  # MySQL has no keys of unbounded texts.


@dataclass(frozen=True, slots=True, kw_only=True)
class NewColumn:
    """A column to be made."""

    name: str
    schema: Schema
    is_key: bool


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of one product."""

    product: Product

    @property
    def mark(self) -> str:
        """What stands for a value."""
        return "?" if self.product is Product.SQLITE else "%s"

    def quoted(self, name: str) -> str:
        """A name, with each of its parts, as it is written."""
        sign = "`" if self.product is Product.MYSQL else '"'
        return ".".join(f"{sign}{part.replace(sign, sign * 2)}{sign}" for part in name.split("."))

    def column(self, name: str) -> str:
        """A name without parts, as it is written."""
        sign = "`" if self.product is Product.MYSQL else '"'
        return f"{sign}{name.replace(sign, sign * 2)}{sign}"

    def type_of(self, column: NewColumn) -> str:
        """The type of a new column; ConnectError for one that no column can hold."""
        schema = column.schema
        if schema.name in _LOGICAL[self.product]:
            scale = scale_of(schema) if schema.name == DECIMAL else 0
            return _LOGICAL[self.product][schema.name or ""].format(scale)
        if column.is_key and schema.type is SchemaType.STRING and self.product in _KEY_TEXT:
            return _KEY_TEXT[self.product]
        try:
            return _TYPES[self.product][schema.type]
        except KeyError:
            raise ConnectError(
                f"The field {column.name} is of type {schema.type}, which no column has."
                " The transform Flatten can take it apart."
            ) from None

    def create(self, table: str, columns: Sequence[NewColumn]) -> str:
        """A statement that makes a table."""
        lines = [self._defined(one) for one in columns]
        key = [self.column(one.name) for one in columns if one.is_key]
        if key:
            lines.append(f"PRIMARY KEY ({', '.join(key)})")
        return f"CREATE TABLE {self.quoted(table)} ({', '.join(lines)})"

    def add(self, table: str, column: NewColumn) -> str:
        """A statement that gives a table one more column."""
        return f"ALTER TABLE {self.quoted(table)} ADD COLUMN {self._defined(column)}"

    def insert(self, table: str, columns: Sequence[str]) -> str:
        """A statement for one row; a key that is there is an error."""
        names = ", ".join(self.column(one) for one in columns)
        marks = ", ".join(self.mark for _ in columns)
        return f"INSERT INTO {self.quoted(table)} ({names}) VALUES ({marks})"

    def upsert(self, table: str, columns: Sequence[str], key: Sequence[str]) -> str:
        """A statement for one row, which takes the place of the one with its key."""
        rest = [one for one in columns if one not in key]
        inserted = self.insert(table, columns)
        if self.product is Product.MYSQL:
            chosen = rest or key[:1]
            values = ", ".join(f"{self.column(c)} = VALUES({self.column(c)})" for c in chosen)
            return f"{inserted} ON DUPLICATE KEY UPDATE {values}"
        listed = ", ".join(self.column(one) for one in key)
        if not rest:
            return f"{inserted} ON CONFLICT ({listed}) DO NOTHING"
        values = ", ".join(f"{self.column(c)} = EXCLUDED.{self.column(c)}" for c in rest)
        return f"{inserted} ON CONFLICT ({listed}) DO UPDATE SET {values}"

    def update(self, table: str, columns: Sequence[str], key: Sequence[str]) -> str:
        """A statement that changes one row; values first, then the key."""
        values = ", ".join(f"{self.column(c)} = {self.mark}" for c in columns if c not in key)
        return f"UPDATE {self.quoted(table)} SET {values} WHERE {self._where(key)}"

    def delete(self, table: str, key: Sequence[str]) -> str:
        """A statement that removes one row."""
        return f"DELETE FROM {self.quoted(table)} WHERE {self._where(key)}"

    def _where(self, key: Sequence[str]) -> str:
        return " AND ".join(f"{self.column(one)} = {self.mark}" for one in key)

    def _defined(self, column: NewColumn) -> str:
        bound = "" if column.schema.optional and not column.is_key else " NOT NULL"
        return f"{self.column(column.name)} {self.type_of(column)}{bound}"
