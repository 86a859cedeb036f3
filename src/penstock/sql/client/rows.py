"""What a query answers: rows with names and types, one after the other or all as a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, overload

from penstock.sql.client.values import type_named
from penstock.sql.types.kinds import DataType
from penstock.sql.types.text import text_of

if TYPE_CHECKING:
    import pandas
    import pyarrow

_SHOWN_ROWS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """The name of a column and its type, as the service writes it."""

    name: str
    type: str

    @property
    def kind(self) -> DataType | None:
        """The type as this library knows it."""
        return type_named(self.type)


@dataclass(frozen=True, slots=True, eq=False)
class NamedRow(Sequence[Any]):
    """Values by number, by name and as attributes; equal to a tuple of them."""

    columns: tuple[ResultColumn, ...]
    values: tuple[Any, ...]

    @overload
    def __getitem__(self, which: int | str) -> Any: ...
    @overload
    def __getitem__(self, which: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, which: int | str | slice) -> Any:
        if isinstance(which, str):
            return self.values[self._index(which)]
        return self.values[which]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NamedRow):
            return self.values == other.values
        return self.values == other

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return f"({', '.join(f'{n}={v!r}' for n, v in self.as_dict().items())})"

    def as_dict(self) -> dict[str, Any]:
        """The values by the names of their columns."""
        return {c.name: v for c, v in zip(self.columns, self.values, strict=False)}

    def _index(self, name: str) -> int:
        """The column of exactly this name, or else of this name in upper case, as SQL has it."""
        names = [column.name for column in self.columns]
        for one in (name, name.upper()):
            if one in names:
                return names.index(one)
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class ResultTable(Sequence[NamedRow]):
    """All rows of a query that ended. A notebook shows it as a table."""

    columns: tuple[ResultColumn, ...]
    rows: tuple[NamedRow, ...]

    @overload
    def __getitem__(self, which: int) -> NamedRow: ...
    @overload
    def __getitem__(self, which: slice) -> "ResultTable": ...
    def __getitem__(self, which: int | slice) -> "NamedRow | ResultTable":
        if isinstance(which, slice):
            return ResultTable(self.columns, self.rows[which])
        return self.rows[which]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def to_arrow(self) -> "pyarrow.Table":
        """An Arrow table with the types of the columns."""
        from penstock.sql.client.arrow import arrow_table

        return arrow_table(self)

    def to_pandas(self) -> "pandas.DataFrame":
        """A data frame; values that numpy has no type for stay Python's own."""
        import pandas

        data = {name: [row[at] for row in self.rows] for at, name in enumerate(self.names)}
        return pandas.DataFrame(data, columns=self.names)

    def _repr_html_(self) -> str:
        shown = [[text_of(v, c.kind) for c, v in zip(self.columns, row, strict=True)]
                 for row in self.rows[:_SHOWN_ROWS_MAX]]  # fmt: skip
        left = len(self.rows) - len(shown)
        more = f"<p>and {left} more rows</p>" if left else ""
        return html_table(self.names, shown, [column.type for column in self.columns]) + more


def html_table(
    names: Sequence[str], rows: Sequence[Sequence[str]], hints: Sequence[str] = ()
) -> str:
    """A table for a notebook; a hint is shown when the mouse is on a name."""
    titles = [*hints, *[""] * (len(names) - len(hints))]
    heads = "".join(f'<th title="{escape(t)}">{escape(n)}</th>'
                    for n, t in zip(names, titles, strict=True))  # fmt: skip
    body = "".join(f"<tr>{''.join(f'<td>{escape(v)}</td>' for v in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
