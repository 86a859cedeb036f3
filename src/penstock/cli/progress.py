"""A line on the terminal that tells how far long work has come; nothing where no one looks."""

import sys
import time
from typing import Self, TextIO

_EVERY_S = 0.2
_SILENT_S = 1.0  # Work that is done by then needs no line.


class Progress:
    """Counts up to a total: `with Progress("groups", 300) as progress: progress.step()`."""

    def __init__(self, what: str, total: int, *, to: TextIO | None = None) -> None:
        self._what = what
        self._total = total
        self._to = sys.stderr if to is None else to
        self._done = 0
        self._shown = False
        self._next_s = time.monotonic() + _SILENT_S

    def step(self, count: int = 1) -> None:
        """So much more is done."""
        self._done += count
        now_s = time.monotonic()
        if now_s >= self._next_s and self._to.isatty():
            self._next_s = now_s + _EVERY_S
            self._shown = True
            print(f"\r{self.line}", end="", file=self._to, flush=True)

    @property
    def line(self) -> str:
        """What it says now."""
        return f"{self._done} of {self._total} {self._what}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:  # What is printed next begins on a clean line.
            print(f"\r{' ' * len(self.line)}\r", end="", file=self._to, flush=True)
