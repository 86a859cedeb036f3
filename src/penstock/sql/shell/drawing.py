"""Tables as lines of text that fit a terminal; pure, so that tests can look at every character.

Cells that are too wide are broken into lines. A terminal too narrow for the columns gets each row
as a list of names and values.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, chop_cells

_NARROW: Final = 6  # Fewer characters of a column cannot be read.
_CELL_LINES_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class TableFrame:
    """A table with the widths of its columns decided; rows may come later."""

    names: tuple[str, ...]
    widths: tuple[int, ...]  # Empty: the terminal is too narrow for a table.

    @classmethod
    def fitting(
        cls, names: Sequence[str], rows: Sequence[Sequence[str]], width: int | None
    ) -> "TableFrame":
        """Columns as wide as their widest cell, or as the terminal allows. None: no bound."""
        wanted = [
            max([1, *(_wide(line) for cell in (name, *cells) for line in cell.split("\n"))])
            for name, *cells in zip(names, *rows, strict=True)
        ]
        return cls(tuple(names), fit_widths(wanted, width))

    @classmethod
    def even(cls, names: Sequence[str], width: int) -> "TableFrame":
        """Columns of one width that fill the terminal: the rows are not known yet."""
        room = width - 3 * len(names) - 1
        each = room // max(1, len(names))
        if each < _NARROW:
            return cls(tuple(names), ())
        first = [each + 1] * (room % len(names))
        return cls(tuple(names), tuple(first + [each] * (len(names) - len(first))))

    def head(self) -> Iterator[str]:
        """The border and the names."""
        if self.widths:
            yield self._border("┌", "┬", "┐")
            yield from self._lines(self.names)
            yield self._border("├", "┼", "┤")

    def row(self, cells: Sequence[str]) -> Iterator[str]:
        """A row, over as many lines as its longest cell needs."""
        if self.widths:
            yield from self._lines(cells)
            return
        longest = max((_wide(name) for name in self.names), default=0)
        yield "─" * (longest + 2)
        for name, cell in zip(self.names, cells, strict=True):
            yield f"{name}{' ' * (longest - _wide(name))}: {cell}"

    def foot(self) -> Iterator[str]:
        """The border below the last row."""
        if self.widths:
            yield self._border("└", "┴", "┘")

    def _lines(self, cells: Sequence[str]) -> Iterator[str]:
        broken = [broken_cell(cell, w) for cell, w in zip(cells, self.widths, strict=True)]
        for at in range(max(len(lines) for lines in broken)):
            parts = [lines[at] if at < len(lines) else "" for lines in broken]
            padded = (p + " " * (w - _wide(p)) for p, w in zip(parts, self.widths, strict=True))
            yield f"│ {' │ '.join(padded)} │"

    def _border(self, left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * (w + 2) for w in self.widths) + right


def fit_widths(wanted: Sequence[int], width: int | None) -> tuple[int, ...]:
    """Each column gets what it wants; those that want most give way. Empty: there is no room."""
    room = None if width is None else width - 3 * len(wanted) - 1
    if room is None or sum(wanted) <= room:
        return tuple(wanted)
    if room < sum(min(one, _NARROW) for one in wanted):
        return ()
    low, high = 1, max(wanted)
    while low < high:  # The widest bound on a column with which all of them fit.
        middle = (low + high + 1) // 2
        if sum(min(one, middle) for one in wanted) <= room:
            low = middle
        else:
            high = middle - 1
    spare = room - sum(min(one, low) for one in wanted)
    widths = []
    for one in wanted:
        extra = 1 if one > low and spare > 0 else 0
        spare -= extra
        widths.append(min(one, low) + extra)
    return tuple(widths)


def broken_cell(cell: str, width: int) -> list[str]:
    """The lines of a cell; control characters are shown and do not act."""
    found: list[str] = []
    for line in cell.split("\n"):
        shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
        found += _broken(shown, width) or [""]
        if len(found) > _CELL_LINES_MAX:
            return [*found[:_CELL_LINES_MAX], "..."[:width]]
    return found


def _broken(line: str, width: int) -> list[str]:
    """Lines that end between words where they can."""
    found: list[str] = []
    while _wide(line) > width and len(found) <= _CELL_LINES_MAX:
        first = chop_cells(line, width)[0] or line[0]
        space = len(first) if line[len(first)] == " " else first.rfind(" ")
        cut = space + 1 if space > width // 2 else len(first)
        found.append(line[:cut].rstrip())
        line = line[cut:]
    return [*found, line] if line else found


def _wide(text: str) -> int:
    return cell_len(text)


def table_lines(
    names: Sequence[str], rows: Sequence[Sequence[str]], width: int | None
) -> Iterator[str]:
    """A whole table."""
    frame = TableFrame.fitting(names, rows, width)
    yield from frame.head()
    for row in rows:
        yield from frame.row(row)
    yield from frame.foot()
