"""The rows of one query while they come."""

import binascii
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import InvalidOperation
from typing import Any, Self

from penstock.sql.client.errors import SqlServiceUnreachable, refusal
from penstock.sql.client.rows import NamedRow, ResultColumn, ResultTable
from penstock.sql.client.service_http import LineStream, read_json
from penstock.sql.client.values import value_of
from penstock.sql.types.failures import RowFailure

_WRONG = (TypeError, ValueError, AttributeError, RowFailure, InvalidOperation, binascii.Error)


@dataclass(slots=True, kw_only=True)
class RowStream(Iterator[NamedRow]):
    """An iterator of rows; a push query goes on until it is closed or its LIMIT is reached.

    Use it with `with`, so that the service hears when nobody listens any more.
    """

    columns: tuple[ResultColumn, ...]
    query_id: str | None
    end_query: Callable[[str], None] = field(repr=False)
    lines: LineStream = field(repr=False)
    _waiting: Iterator[bytes] = field(repr=False)
    _is_over: bool = False

    @classmethod
    def of(cls, lines: LineStream, end_query: Callable[[str], None]) -> Self:
        """Reads the first line, which names the columns."""
        waiting = iter(lines)
        head = read_json(next(waiting, b"null"), lines.address)
        if not isinstance(head, dict):
            lines.close()
            raise SqlServiceUnreachable(f"{lines.address} does not answer like a SQL service")
        if "columnNames" not in head:
            lines.close()
            raise refusal(head)
        pairs = zip(head["columnNames"], head.get("columnTypes") or (), strict=False)
        return cls(
            columns=tuple(ResultColumn(str(name), str(kind)) for name, kind in pairs),
            query_id=head.get("queryId"),
            end_query=end_query,
            lines=lines,
            _waiting=waiting,
        )

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> NamedRow:
        for line in self._waiting:
            read = read_json(line, self.lines.address)
            if isinstance(read, list):
                return self._row(read)
            if isinstance(read, dict) and "error_code" in read:
                self._finish()
                raise refusal(read)
        self._finish()
        raise StopIteration

    def table(self, rows_max: int | None = None) -> ResultTable:
        """The rows that are left, or so many of them, as a table."""
        found: list[NamedRow] = []
        while rows_max is None or len(found) < rows_max:
            row = next(self, None)
            if row is None:
                break
            found.append(row)
        return ResultTable(self.columns, tuple(found))

    def close(self) -> None:
        """The query ends, here and in the service."""
        if not self._is_over and not self.lines.is_closed and self.query_id is not None:
            self.end_query(self.query_id)
        self._finish()

    def _finish(self) -> None:
        self._is_over = True
        self.lines.close()

    def _row(self, read: list[Any]) -> NamedRow:
        try:
            pairs = zip(read, self.columns, strict=True)
            return NamedRow(self.columns, tuple(value_of(v, c.kind) for v, c in pairs))
        except _WRONG as error:
            self._finish()
            raise SqlServiceUnreachable(f"a row is not of its columns' types: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
