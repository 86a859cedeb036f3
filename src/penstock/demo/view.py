"""The demo's screen: prices, averages, throughput and lag, and what to try next.

On a terminal a live picture, elsewhere a few plain lines every few seconds. Only words and colours;
the numbers come from the board and the supervisor.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from penstock.demo.board import Board, StockLine
from penstock.demo.prices import AVERAGES, LATENESS, PRICES, WINDOW
from penstock.demo.stocks import IMPORTANT
from penstock.pipelines.state import QueryStatus

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_BARS = "▁▂▃▄▅▆▇█"
_LINES_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything the screen tells besides the board."""

    address: str
    data: str
    table: str
    command: str  # How to call penstock from here.
    state: str
    phase: str  # What Spark is doing.
    sent: int
    queries: Sequence[QueryStatus]


def commands(facts: Facts) -> list[tuple[str, str]]:
    """What to look at next, to copy into a second terminal."""
    server = f"--bootstrap-server {facts.address}"
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
            "the table, in DuckDB",
            f"SELECT name, max(high) FROM delta_scan('{facts.table}') GROUP BY name",
        ),
    ]


def picture(board: Board, facts: Facts) -> "RenderableType":
    """The whole screen."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    head = Text.assemble(
        ("Penstock ", "bold cyan"),
        f"broker at {facts.address}, data in {facts.data}. ",
        ("Ctrl-C stops it; the next run goes on from here.", "dim"),
    )
    hints = Table.grid(padding=(0, 2))
    hints.add_column(style="bold", no_wrap=True)
    hints.add_column(style="green", overflow="fold")
    for name, command in commands(facts):
        hints.add_row(name, command)
    return Group(
        head,
        _stocks(board.stocks.values()),
        _flow(board, facts),
        Text(facts.phase, style="yellow"),
        Panel(hints, title="in a second terminal", title_align="left", border_style="dim"),
    )


def _stocks(lines: Iterable[StockLine]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=f"stock prices, and per window of {WINDOW} (events up to {LATENESS} late count)",
        title_justify="left",
        header_style="bold",
    )
    table.add_column("stock", no_wrap=True)
    table.add_column("price $", justify="right", no_wrap=True)
    table.add_column("last prices", no_wrap=True)
    for name in ("average", "high", "low", "prices"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("window ended", no_wrap=True)
    for line in sorted(lines, key=lambda one: (one.name not in IMPORTANT, one.name)):
        shown = Text(line.name, style="bold magenta" if line.name in IMPORTANT else "")
        price = "" if line.cents is None else f"{line.cents / 100:,.2f}"
        table.add_row(shown, price, _spark(line.history_cents), *_window_cells(line))
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


def _flow(board: Board, facts: Facts) -> "Table":
    from rich.table import Table

    table = Table(title="what flows", title_justify="left", header_style="bold")
    for name in ("step", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("records", "per s", "batch ms", "lag", "too late"):
        table.add_column(name, justify="right", no_wrap=True)
    rate = f"{board.prices_per_s():,.0f}"
    table.add_row(f"producer → {PRICES.name}", "running", f"{facts.sent:,}", rate, "", "", "")
    for query in facts.queries:
        target = "Delta table" if query.output == "table" else query.output
        table.add_row(
            f"Spark → {target}",
            query.state,
            f"{query.rows:,}",
            "" if query.processed_rows_per_s is None else f"{query.processed_rows_per_s:,.0f}",
            "" if query.batch_ms is None else f"{query.batch_ms:,}",
            "" if query.lag is None else f"{query.lag:,}",
            f"{query.late_rows:,}",
        )
    return table


def _spark(history: Sequence[int]) -> str:
    """The last prices as little bars."""
    if len(history) < 2:
        return ""
    low, high = min(history), max(history)
    span = max(1, high - low)
    return "".join(_BARS[(cents - low) * (len(_BARS) - 1) // span] for cents in history)


def line(board: Board, facts: Facts) -> str:
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

    def show(self, board: Board, facts: Facts) -> None:
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

    def show(self, board: Board, facts: Facts) -> None:
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

    def show(self, board: Board, facts: Facts) -> None:
        self._live.update(picture(board, facts), refresh=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)
