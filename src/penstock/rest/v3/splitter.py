"""Concatenated JSON objects, cut apart as their bytes come in.

Pure. An object ends where its braces are even again outside of strings; whether it is JSON is for
whoever parses it. A whole object that does not nest deeply is found by one pattern, which takes no
step back, so it costs time in proportion to its length whatever it contains; the others, and those
whose end has not come yet, are walked from brace to quote. Each byte is looked at a fixed number of
times, however small the pieces in which it comes, and no more than one object is kept.
"""

import re
from typing import Final

_FLAT_LEVELS: Final = 6
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def _flat(levels: int) -> bytes:
    """The pattern of an object in which objects nest at most so deep."""
    inner = _STRING if not levels else rb"(?:" + _STRING + rb"|" + _flat(levels - 1) + rb")"
    return rb'\{[^"{}]*+(?:' + inner + rb'[^"{}]*+)*+\}'


_OBJECT: Final = re.compile(rb"[ \t\r\n]*+(" + _flat(_FLAT_LEVELS) + rb")", re.DOTALL)
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_MARK: Final = re.compile(rb'["{}]')
_END_OF_STRING: Final = re.compile(rb'["\\]')


class JsonSplitter:
    """Takes pieces, gives objects; `failure` says why nothing more can be found."""

    def __init__(self, object_bytes_max: int) -> None:
        self._bytes_max = object_bytes_max
        self._kept = bytearray()  # An object that has begun.
        self._skip = 0  # 1: a backslash came last, so the next byte ends nothing.
        self._depth = 0
        self._is_in_string = False
        self.failure: str | None = None

    def feed(self, piece: bytes) -> list[bytes]:
        """The objects that end in this piece."""
        found: list[bytes] = []
        at = 0
        while self.failure is None and at < len(piece):
            if not self._kept:
                at = self._take_whole(piece, at, found)
            if at < len(piece) and self.failure is None:
                at = self._go_on(piece, at, found)
        return found

    def finish(self) -> None:
        """There is no more to come."""
        if self._kept and self.failure is None:
            self.failure = "The body ends within a record."

    def _take_whole(self, piece: bytes, at: int, found: list[bytes]) -> int:
        """All objects that are there from beginning to end; where they end."""
        match = _OBJECT.match(piece, at)
        while match is not None:
            if match.end(1) - match.start(1) > self._bytes_max:
                self._fail_for_size()
                return at
            found.append(match[1])
            at = match.end()
            match = _OBJECT.match(piece, at)
        space = _SPACE.match(piece, at)
        return space.end() if space is not None else at

    def _go_on(self, piece: bytes, at: int, found: list[bytes]) -> int:
        """Walk one object up to its end or the end of the piece; where that is."""
        if not self._kept and piece[at] != 0x7B:
            self.failure = f"A record begins with {{, not with byte {piece[at]}."
            return at
        base = len(self._kept)
        end = self._walk(piece, at)
        size = (len(piece) if end is None else end) - at
        if base + size > self._bytes_max:
            self._fail_for_size()
            return at
        self._kept += piece[at : at + size]
        if end is None:
            return len(piece)
        found.append(bytes(self._kept))
        self._kept = bytearray()
        return end

    def _walk(self, piece: bytes, at: int) -> int | None:
        """Where the object ends; None: not in this piece."""
        at, self._skip = at + self._skip, 0
        while True:
            pattern = _END_OF_STRING if self._is_in_string else _MARK
            match = pattern.search(piece, at)
            if match is None:
                return None
            at = match.end()
            mark = match[0]
            if mark == b"\\":
                at += 1  # What follows is no end of the string.
                if at > len(piece):
                    self._skip = 1
                    return None
            elif mark == b'"':
                self._is_in_string = not self._is_in_string
            else:
                self._depth += 1 if mark == b"{" else -1
                if not self._depth:
                    return at

    def _fail_for_size(self) -> None:
        self.failure = f"A record is larger than {self._bytes_max} bytes."
        self._kept = bytearray()
