"""Where the shell writes: the terminal, and a spool file beside it if there is one."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from rich.console import Console
from rich.text import Text

from penstock.errors import CommandError
from penstock.sql.client.grids import Grid
from penstock.sql.client.rows import NamedRow, ResultColumn
from penstock.sql.client.values import json_text
from penstock.sql.shell.drawing import TableFrame, table_lines
from penstock.sql.types.text import text_of

Style = Literal["TABULAR", "JSON"]
_UNBOUND_COLUMNS = 160  # Of a push query that goes to a file: its rows are not known before.


@dataclass(slots=True)
class ShellOutput:
    """Tables, rows, sentences and errors; as a person or a program wants them."""

    console: Console
    errors: Console
    style: Style = "TABULAR"
    _spool: IO[str] | None = field(default=None)

    @property
    def width(self) -> int | None:
        """Of the terminal; None: what is written goes to a file or a pipe."""
        return self.console.width if self.console.is_terminal else None

    def say(self, text: str, style: str = "") -> None:
        """A sentence, or lines of them."""
        for line in text.split("\n"):
            self.console.print(Text(line, style=style), soft_wrap=True)
            self._keep(line)

    def complain(self, text: str) -> None:
        """An error."""
        for line in text.split("\n"):
            self.errors.print(Text(line, style="red"), soft_wrap=True)
            self._keep(line)

    def grid(self, grid: Grid) -> None:
        """An answer of the service."""
        if grid.title:
            self.say(grid.title)
        if grid.names and not grid.rows:
            self.say(f"({', '.join(grid.names)}: none)", "dim")
        elif grid.names:
            self._table(table_lines(grid.names, grid.rows, self.width))
        if grid.text:
            self.say(grid.text)

    def document(self, document: Any) -> None:
        """An answer as it came."""
        self.say(json.dumps(document, indent=2, default=str))

    def rows(self, columns: Sequence[ResultColumn], rows: Sequence[NamedRow]) -> None:
        """All rows of a query that ended."""
        if self.style == "JSON":
            for row in rows:
                self.say(json_text(row.as_dict()))
            return
        names = [column.name for column in columns]
        self._table(table_lines(names, [row_cells(columns, row) for row in rows], self.width))

    def live(self, columns: Sequence[ResultColumn]) -> "LiveRows":
        """The place for rows that come one by one."""
        width = self.width or _UNBOUND_COLUMNS
        return LiveRows(self, tuple(columns), TableFrame.even([c.name for c in columns], width))

    def table_line(self, line: str, *, is_head: bool = False) -> None:
        """A line of a table, whose borders step back."""
        shown = Text(line, style="bold" if is_head else "")
        shown.highlight_regex("[│┌┬┐├┼┤└┴┘─]+", "dim")
        self.console.print(shown, soft_wrap=True)
        self._keep(line)

    @contextmanager
    def spooling(self, path: Path) -> Iterator[None]:
        """Write all that is shown to a file as well, until the block ends."""
        self.spool_to(path)
        try:
            yield
        finally:
            self.end_spool()

    def spool_to(self, path: Path) -> None:
        """From now on all that is shown goes to a file as well."""
        self.end_spool()
        try:
            self._spool = path.expanduser().open("a", encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}") from None

    def end_spool(self) -> None:
        """The file is closed, if there was one."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def keep_typed(self, text: str) -> None:
        """What was typed belongs to the record too."""
        self._keep(text)

    def _table(self, lines: Iterator[str]) -> None:
        for at, line in enumerate(lines):
            self.table_line(line, is_head=at == 1)

    def _keep(self, line: str) -> None:
        if self._spool is not None:
            self._spool.write(f"{line}\n")
            self._spool.flush()


@dataclass(slots=True)
class LiveRows:
    """Rows as they come, below a head that is drawn once."""

    output: ShellOutput
    columns: tuple[ResultColumn, ...]
    frame: TableFrame

    def begin(self) -> None:
        """The names of the columns."""
        if self.output.style == "TABULAR":
            for line in self.frame.head():
                self.output.table_line(line, is_head=True)

    def show(self, row: NamedRow) -> None:
        """One more row."""
        if self.output.style == "JSON":
            self.output.say(json_text(row.as_dict()))
            return
        for line in self.frame.row(row_cells(self.columns, row)):
            self.output.table_line(line)

    def end(self) -> None:
        """The border below."""
        if self.output.style == "TABULAR":
            for line in self.frame.foot():
                self.output.table_line(line)


def row_cells(columns: Sequence[ResultColumn], row: NamedRow) -> list[str]:
    """The values of a row as ksqlDB writes them."""
    return [text_of(value, column.kind) for column, value in zip(columns, row, strict=True)]
