"""Tables for people that fit the terminal: what matters least goes first when it is narrow.

rich would shorten every column until none can be read; here whole columns go, in a given order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table

_UNLIMITED = 10_000


@dataclass(frozen=True, slots=True)
class Fitting:
    """The first of several tables that is narrow enough; the last one if none is."""

    tables: Sequence[Callable[[], "Table"]]

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        for make in self.tables:
            table = make()
            if natural_width(console, options, table) <= options.max_width:
                break
        yield table


def without_one_after_another(names: Sequence[str]) -> list[frozenset[str]]:
    """What is left out in each of the tables: nothing, the first, the first two, and so on."""
    return [frozenset(names[:count]) for count in range(len(names) + 1)]


def natural_width(console: "Console", options: "ConsoleOptions", table: "RenderableType") -> int:
    """How wide it would like to be."""
    from rich.measure import Measurement

    return Measurement.get(console, options.update_width(_UNLIMITED), table).maximum
