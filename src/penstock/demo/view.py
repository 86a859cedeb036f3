"""The demo's screen: prices, averages, throughput and lag, and what to try next.

On a terminal a live picture, elsewhere a few plain lines every few seconds. Only words and colours;
the numbers come from the board and the supervisor.
"""

import time
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, Self

from penstock.demo.board import Board, StockLine
from penstock.demo.prices import AVERAGES, LATENESS, PRICES, WINDOW
from penstock.demo.stocks import IMPORTANT
from penstock.pipelines.fitting import Fitting, without_one_after_another
from penstock.queries.status import QueryStatus

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table

_BARS = "▁▂▃▄▅▆▇█"
_BARS_MAX = 24
_STOCK_COLUMNS = (
    "stock",
    "price $",
    "last prices",
    "average",
    "high",
    "low",
    "prices",
    "window ended",
)
_LINES_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenFacts:
    """Everything the screen tells besides the board."""

    address: str
    registry: str
    rest: str
    data: str
    table: str
    command: str  # How to call penstock from here.
    state: str
    phase: str  # What Spark is doing.
    sent: int
    queries: Sequence[QueryStatus]


def commands(facts: ScreenFacts) -> list[tuple[str, str]]:
    """What to look at next, to copy into a second terminal."""
    server = f"--bootstrap-server {facts.address}"
    python = facts.command.removesuffix("penstock") + "python"
    return [
        (
            "prices as they come",
            f"{facts.command} console-consumer {server} --topic {PRICES.name}",
        ),
        (
            "windows, exactly once",
            f"{facts.command} console-consumer {server} --topic {AVERAGES.name} --from-beginning"
            " --isolation-level read_committed",
        ),
        ("the lag of Spark", f"{facts.command} consumer-groups {server} --describe --all-groups"),
        ("its health", f"{facts.command} pipeline status --state {facts.state}"),
        (
            "the Delta table",
            f"{python} -c \"import polars; print(polars.read_delta('{facts.table}').tail())\"",
        ),
        ("topics over HTTP", f"curl -s {facts.rest}/topics"),
        ("schemas", f"curl -s {facts.registry}/subjects"),
        ("all processes", f"{facts.command} status --dir {facts.state}"),
    ]


def picture(board: Board, facts: ScreenFacts, *, height: int | None = None) -> "RenderableType":
    """The whole screen; what there is to try only if `height` has room for it."""
    from rich.console import Group
    from rich.text import Text

    head = Text.assemble(
        ("Penstock ", "bold cyan"),
        f"at {facts.address}, data in {facts.data}. ",
        ("Ctrl-C stops; the next run goes on.", "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )
    services = Text.assemble(
        ("Registry ", "bold cyan"),
        f"at {facts.registry}, ",
        ("REST ", "bold cyan"),
        f"at {facts.rest}",
        no_wrap=True,
        overflow="ellipsis",
    )
    phase = Text(facts.phase, style="yellow", no_wrap=True, overflow="ellipsis")
    shown = Group(head, services, _stocks(board.stocks.values()), _flow(board, facts), phase)
    return _WithRoom(shown, _hints(facts), height)


@dataclass(frozen=True, slots=True)
class _WithRoom:
    """A picture, and under it what is left out rather than cut off."""

    shown: "RenderableType"
    more: "RenderableType"
    height: int | None  # None: there is room.

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.text import Text

        yield self.shown
        lines = [
            len(console.render_lines(one, options, pad=False)) for one in (self.shown, self.more)
        ]
        if self.height is None or sum(lines) < self.height:
            yield self.more
        elif lines[0] + 1 < self.height:
            yield Text("A taller terminal shows what to try next.", style="dim", no_wrap=True)


def _hints(facts: ScreenFacts) -> "RenderableType":
    from rich.panel import Panel
    from rich.table import Table

    hints = Table.grid(padding=(0, 2))
    hints.add_column(style="bold", no_wrap=True)
    hints.add_column(style="green", overflow="fold")
    for name, command in commands(facts):
        hints.add_row(name, command)
    return Panel(hints, title="in a second terminal", title_align="left", border_style="dim")


def _stocks(lines: Iterable[StockLine]) -> "RenderableType":
    rows = sorted(lines, key=lambda one: (one.name not in IMPORTANT, one.name))
    gone = without_one_after_another(("prices", "low", "last prices", "window ended"))
    narrow = [partial(_stock_table, rows, one, _BARS_MAX // 2) for one in gone]
    return Fitting([partial(_stock_table, rows, frozenset(), _BARS_MAX), *narrow])


def _stock_table(lines: Sequence[StockLine], gone: Container[str], bars: int) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=f"stock prices, and windows of {WINDOW}; up to {LATENESS} late counts",
        title_justify="left",
        header_style="bold",
    )
    for name in _STOCK_COLUMNS:
        if name not in gone:
            left = name in ("stock", "last prices", "window ended")
            table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for line in lines:
        shown = Text(line.name, style="bold magenta" if line.name in IMPORTANT else "")
        price = "" if line.cents is None else f"{line.cents / 100:,.2f}"
        recent = _spark(line.history_cents[-bars:])
        cells: list[RenderableType] = [shown, price, recent, *_window_cells(line)]
        row = zip(_STOCK_COLUMNS, cells, strict=True)
        table.add_row(*(cell for name, cell in row if name not in gone))
    return table


def _window_cells(line: StockLine) -> list[str]:
    window = line.window
    if window is None:
        return ["…", "", "", "", ""]
    clock = window.end[11:19]
    return [
        f"{window.average:,.2f}",
        f"{window.high:,.2f}",
        f"{window.low:,.2f}",
        str(window.prices),
        clock,
    ]


def _flow(board: Board, facts: ScreenFacts) -> "RenderableType":
    gone = without_one_after_another(("too late", "batch ms", "records"))
    return Fitting([partial(_flow_table, board, facts, one) for one in gone])


def _flow_table(board: Board, facts: ScreenFacts, gone: Container[str]) -> "Table":
    from rich.table import Table

    table = Table(title="what flows", title_justify="left", header_style="bold")
    names = ("step", "state", "records", "per s", "batch ms", "lag", "too late")
    for name in names:
        if name not in gone:
            table.add_column(name, justify="left" if name in names[:2] else "right", no_wrap=True)
    rate = f"{board.prices_per_s():,.0f}"
    rows = [(f"producer → {PRICES.name}", "running", f"{facts.sent:,}", rate, "", "", "")]
    rows += [_flow_cells(query) for query in facts.queries]
    for row in rows:
        table.add_row(*(cell for name, cell in zip(names, row, strict=True) if name not in gone))
    return table


def _flow_cells(query: QueryStatus) -> tuple[str, str, str, str, str, str, str]:
    target = "Delta table" if query.output == "table" else query.output
    rate, took, lag = query.processed_rows_per_s, query.batch_ms, query.lag
    return (
        f"Spark → {target}",
        query.state,
        f"{query.rows:,}",
        "" if rate is None else f"{rate:,.0f}",
        "" if took is None else f"{took:,}",
        "" if lag is None else f"{lag:,}",
        f"{query.late_rows:,}",
    )


def _spark(history: Sequence[int]) -> str:
    """The last prices as little bars."""
    if len(history) < 2:
        return ""
    low, high = min(history), max(history)
    span = max(1, high - low)
    return "".join(_BARS[(cents - low) * (len(_BARS) - 1) // span] for cents in history)


def line(board: Board, facts: ScreenFacts) -> str:
    """The state in plain words, for logs and pipes."""
    parts = [f"{facts.sent:,} prices sent ({board.prices_per_s():,.0f}/s)"]
    for query in facts.queries:
        lag = "?" if query.lag is None else f"{query.lag:,}"
        parts.append(f"{query.output}: {query.state}, {query.rows:,} read, lag {lag}")
    for name in IMPORTANT:
        stock = board.stocks.get(name)
        if stock is not None and stock.window is not None:
            window = stock.window
            parts.append(f"{name} average {window.average:,.2f} high {window.high:,.2f}")
    return "; ".join(parts)


class Screen(Protocol):
    """Where the demo shows itself, for as long as it is entered."""

    def report(self, text: str) -> None:
        """Something happened."""

    def show(self, board: Board, facts: ScreenFacts) -> None:
        """How everything is now."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class PlainScreen:
    """Lines where there is no terminal."""

    def __init__(self) -> None:
        self._next_s = 0.0
        self._hinted = False

    def report(self, text: str) -> None:
        print(text, flush=True)

    def show(self, board: Board, facts: ScreenFacts) -> None:
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _LINES_EVERY_S
        print(line(board, facts), flush=True)
        if not self._hinted and board.windows:
            self._hinted = True
            for name, command in commands(facts):
                print(f"  {name}: {command}", flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


class LiveScreen:
    """rich's live display."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self.console = Console()
        self._live = Live(console=self.console, auto_refresh=False, screen=False)

    def report(self, text: str) -> None:
        self.console.print(text, style="dim", highlight=False)

    def show(self, board: Board, facts: ScreenFacts) -> None:
        self._live.update(picture(board, facts, height=self.console.size.height), refresh=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)
