"""Where a word stands in the text, and the error that points at it."""

from dataclasses import dataclass

_SHOWN_CHARACTERS_MAX = 120  # Of the line that an error shows: it may be a whole script.
_BEFORE_CHARACTERS_MAX = 80


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column, both counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}:{self.column}"


class SqlSyntaxError(ValueError):
    """The text is not a statement of the language. `str` is one sentence that names the place."""

    def __init__(self, reason: str, *, place: Place, text: str = "") -> None:
        super().__init__(f"{place}: {reason}")
        self.reason = reason
        self.place = place
        self._text = text

    def picture(self) -> str:
        """The line in question with a caret below the word; empty if there is no such line."""
        lines = self._text.splitlines()
        if self.place.line > len(lines):
            return ""
        line = lines[self.place.line - 1].replace("\t", " ")
        first = max(0, self.place.column - 1 - _BEFORE_CHARACTERS_MAX)
        shown = line[first : first + _SHOWN_CHARACTERS_MAX]
        return f"{shown}\n{' ' * (self.place.column - 1 - first)}^"
