"""The status of pipelines for people: a live table on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Container, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol

from penstock.pipelines.fitting import Fitting, without_one_after_another
from penstock.pipelines.state import PipelineStatus
from penstock.queries.status import QueryStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, RenderableType
    from rich.table import Table

_LINES_EVERY_S = 5.0
_COLOURS = {
    "running": "green",
    "starting Spark": "cyan",
    "starting": "cyan",
    "waiting": "yellow",
    "failed": "red",
    "stopped": "dim",
    "finished": "dim green",
}
_EVENTS_SHOWN = 6
_WORDS = ("pipeline", "output", "state")
_NUMBERS = ("in/s", "done/s", "batch", "batch ms", "records", "late", "lag", "restarts")
_LEAST_FIRST = ("batch", "restarts", "late", "in/s", "output", "records", "batch ms")


class View(Protocol):
    """Where the supervisor's news go."""

    def report(self, line: str) -> None:
        """Something happened."""

    def show(self, statuses: Sequence[PipelineStatus]) -> None:
        """How everything is now."""


@contextmanager
def view_of(stream_is_terminal: bool) -> "Iterator[View]":
    """The live table on a terminal, lines where nobody sees colours."""
    if not stream_is_terminal:
        yield Lines()
        return
    live = LiveTable()
    with live.live:
        yield live
    live.leave()


class Lines:
    """One line for each event, and one for each query every few seconds while something moves."""

    def __init__(self, *, every_s: float = _LINES_EVERY_S) -> None:
        self._every_s = every_s
        self._next_s = time.monotonic() + every_s
        self._last = ""

    def report(self, line: str) -> None:
        print(line, flush=True)

    def show(self, statuses: Sequence[PipelineStatus]) -> None:
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + self._every_s
        text = "\n".join(line_of(query) for one in statuses for query in one.queries)
        if text != self._last:
            print(text, flush=True)
            self._last = text


class LiveTable:
    """rich's live display: the table, and the last events under it."""

    def __init__(self) -> None:
        from rich.live import Live

        self._events: list[str] = []
        self._statuses: Sequence[PipelineStatus] = ()
        self._lock = threading.Lock()
        self.live = Live(get_renderable=self._picture, refresh_per_second=4, screen=False)

    def report(self, line: str) -> None:
        with self._lock:
            self._events.append(f"{time.strftime('%H:%M:%S')} {line}")

    def show(self, statuses: Sequence[PipelineStatus]) -> None:
        self._statuses = statuses

    def leave(self) -> None:
        """The display is gone; a failure must still be readable."""
        for line in self._events[:-_EVENTS_SHOWN]:
            if " failed: " in line:
                print(line)

    def _picture(self) -> "RenderableType":
        from rich.console import Group
        from rich.text import Text

        with self._lock:
            events = self._events[-_EVENTS_SHOWN:]
        lines = (Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in events)
        return Group(table_of(self._statuses), *lines)


def table_of(statuses: Iterable[PipelineStatus]) -> "RenderableType":
    """One row for each query, and under all of them why some do not run."""
    from rich.console import Group
    from rich.text import Text

    queries = [query for status in statuses for query in status.queries]
    layouts = [partial(_table, queries, gone) for gone in without_one_after_another(_LEAST_FIRST)]
    failures = [
        Text(f"{query.name}: {query.failure}", style="red")
        for query in queries
        if query.failure and query.state in ("waiting", "failed")
    ]
    return Group(Fitting(layouts), *failures)


def _table(queries: Sequence[QueryStatus], gone: Container[str]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(expand=False, header_style="bold")
    for name in (*_WORDS, *_NUMBERS):
        if name not in gone:
            table.add_column(name, justify="right" if name in _NUMBERS else "left", no_wrap=True)
    for query in queries:
        state = Text(query.state, style=_COLOURS.get(query.state, ""))
        texts: list[RenderableType] = [query.name, query.output, state, *cells(query)]
        row = zip((*_WORDS, *_NUMBERS), texts, strict=True)
        table.add_row(*(cell for name, cell in row if name not in gone))
    return table


def cells(query: QueryStatus) -> list[str]:
    """The numbers of a query as words; an unknown one is a dash."""
    return [
        _number(query.input_rows_per_s),
        _number(query.processed_rows_per_s),
        _number(query.batch),
        _number(query.batch_ms),
        _number(query.rows),
        _number(query.late_rows),
        _number(query.lag),
        _number(query.restarts),
    ]


def line_of(query: QueryStatus) -> str:
    """A query in one line."""
    arrived, done, batch, batch_ms, rows, late, lag, restarts = cells(query)
    text = (
        f"{query.name}: {query.state}, {rows} records, {arrived}/s in, {done}/s done, "
        f"batch {batch} in {batch_ms} ms, lag {lag}"
    )
    if query.late_rows:
        text += f", {late} too late"
    if query.restarts:
        text += f", {restarts} restarts"
    return text


def details_of(status: PipelineStatus, *, running: bool) -> list[str]:
    """All that is known of one pipeline, for `penstock pipeline status NAME`."""
    where = f"runs in process {status.pid}" if running else "does not run"
    lines = [f"{status.name} {where} ({status.file}, {status.bootstrap}, {status.master})"]
    for query in status.queries:
        shown = query if running or query.state == "failed" else _at_rest(query)
        lines += ["", line_of(shown)]
        lines.append(f"  consumer group  {query.group}")
        lines.append(f"  checkpoint      {query.checkpoint}")
        if query.failure and query.failed_ms:
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(query.failed_ms / 1000))
            lines.append(f"  last failure    {when}: {query.failure}")
    return lines


def settled(status: PipelineStatus, *, running: bool) -> PipelineStatus:
    """A status without the rates of a process that is gone."""
    from dataclasses import replace

    if running:
        return status
    return replace(status, queries=[_at_rest(query) for query in status.queries])


def print_table(statuses: Sequence[PipelineStatus], console: "Console | None" = None) -> None:
    """The table once, as wide as it needs to be where there is no terminal to fit."""
    from rich.console import Console

    if console is None:
        console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(table_of(statuses))


def _at_rest(query: QueryStatus) -> QueryStatus:
    from dataclasses import replace

    state = query.state if query.state in ("failed", "finished") else "stopped"
    return replace(query, state=state, input_rows_per_s=None, processed_rows_per_s=None)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
