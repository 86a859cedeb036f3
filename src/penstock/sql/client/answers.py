"""What statements answer, each as a table that a shell or a notebook can show."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, overload

from penstock.sql.client.grids import GRIDS, Grid
from penstock.sql.client.rows import html_table


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """One answer: the document as it came."""

    document: Any

    @property
    def kind(self) -> str:
        """`streams`, `currentStatus` and the like."""
        return str(self.document.get("@type", "")) if isinstance(self.document, dict) else ""

    @property
    def message(self) -> str | None:
        """What became of a statement that changes something."""
        if not isinstance(self.document, dict):
            return None
        status = self.document.get("commandStatus")
        told = status.get("message") if isinstance(status, dict) else self.document.get("message")
        return None if told is None else str(told)

    @property
    def query_id(self) -> str | None:
        """The query that a statement began."""
        status = self.document.get("commandStatus") if isinstance(self.document, dict) else None
        found = status.get("queryId") if isinstance(status, dict) else None
        return None if found is None else str(found)

    @property
    def warnings(self) -> list[str]:
        """What the service wants to be known besides."""
        found = self.document.get("warnings") if isinstance(self.document, dict) else None
        return [str(one.get("message")) for one in found or () if isinstance(one, dict)]

    def grids(self) -> list[Grid]:
        """The answer as tables and sentences; what is unknown is shown as it came."""
        maker: Callable[[Any], list[Grid]] | None = GRIDS.get(self.kind)
        try:
            if maker is not None:
                return maker(self.document)
        except (KeyError, TypeError, AttributeError, ValueError):
            pass  # Another version of the service: better its own words than none.
        if self.message is not None:
            return [Grid(text=self.message)]
        return [Grid(text=json.dumps(self.document, indent=2, default=str))]

    def _repr_html_(self) -> str:
        return "".join(_html(grid) for grid in self.grids())


@dataclass(frozen=True, slots=True)
class ServiceAnswers(Sequence[ServiceAnswer]):
    """The answers to several statements, in order."""

    answers: tuple[ServiceAnswer, ...]

    @overload
    def __getitem__(self, which: int) -> ServiceAnswer: ...
    @overload
    def __getitem__(self, which: slice) -> "ServiceAnswers": ...
    def __getitem__(self, which: int | slice) -> "ServiceAnswer | ServiceAnswers":
        found = self.answers[which]
        return ServiceAnswers(found) if isinstance(found, tuple) else found

    def __len__(self) -> int:
        return len(self.answers)

    def _repr_html_(self) -> str:
        return "".join(answer._repr_html_() for answer in self.answers)


_LINES: Final = "<pre>{}</pre>"


def _html(grid: Grid) -> str:
    from html import escape

    title = f"<p>{escape(grid.title)}</p>" if grid.title else ""
    text = _LINES.format(escape(grid.text)) if grid.text else ""
    table = html_table(grid.names, grid.rows) if grid.names else ""
    return title + table + text
