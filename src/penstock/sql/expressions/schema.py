"""The columns that an expression may name, and under which key a row has them."""

from collections.abc import Iterator, Mapping
from typing import Final

from penstock.sql.types.kinds import DataType


class ColumnMissing(ValueError):
    """No column, or more than one, has the name."""


class RowSchema(Mapping[str, DataType | None]):
    """Column names and types, in order; a row is a mapping with the same keys.

    The columns of joined sources have keys such as `ORDERS.ID`: they are found by that, and by `ID`
    alone if no other source has it. `sources` are the names that may stand before the dot of a
    column whose key has none.
    """

    def __init__(
        self, columns: Mapping[str, DataType | None], sources: frozenset[str] = frozenset()
    ) -> None:
        self._columns: Final = dict(columns)
        self.sources: Final = sources

    def __getitem__(self, key: str) -> DataType | None:
        return self._columns[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def key_of(self, name: str, source: str | None = None) -> str:
        """The key of the column that is meant; raises ColumnMissing."""
        if source is None:
            return name if name in self._columns else self._only_source(name)
        if (key := f"{source}.{name}") in self._columns:
            return key
        if source in self.sources and name in self._columns:
            return name
        raise ColumnMissing(f"Column '{key}' cannot be resolved.")

    def _only_source(self, name: str) -> str:
        found = [key for key in self._columns if key.endswith(f".{name}")]
        if len(found) > 1:
            raise ColumnMissing(f"Column '{name}' is ambiguous. Could be {' or '.join(found)}.")
        if not found:
            raise ColumnMissing(f"Column '{name}' cannot be resolved.")
        return found[0]

    def with_columns(self, more: Mapping[str, DataType | None]) -> "RowSchema":
        """A schema that has these too; a column of the same key is hidden by the new one."""
        return RowSchema({**self._columns, **more}, self.sources)
