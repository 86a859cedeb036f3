"""Messages out of a stream of bytes, as RFC 6587 has it: counted, or each on a line.

A message that is too long is cut; what is behind the cut is thrown away, so that no sender fills
our memory.
"""

_COUNT_DIGITS_MAX = 9


class SyslogFrames:
    """One connection's bytes; each message may begin with its length."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._rest = b""
        self._skip = 0  # Bytes of a counted message that are left out.
        self._to_line_end = False  # The rest of a line is left out.

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are whole now."""
        self._rest += data
        found = []
        while (message := self._next()) is not None:
            if message:
                found.append(message)
        return found

    def end(self) -> list[bytes]:
        """What is left when the sender hangs up: a line without an end."""
        rest, self._rest = self._rest, b""
        is_line = bool(rest) and not rest[:1].isdigit() and not self._to_line_end
        return [rest[: self._size_max]] if is_line and not self._skip else []

    def _next(self) -> bytes | None:
        """One message, empty where something was left out; None: more must come."""
        if self._skip:
            return self._skipped()
        if not self._rest:
            return None
        return self._counted() if self._rest[:1].isdigit() else self._line()

    def _skipped(self) -> bytes | None:
        count = min(self._skip, len(self._rest))
        self._skip, self._rest = self._skip - count, self._rest[count:]
        return None if self._skip else b""

    def _counted(self) -> bytes | None:
        digits, blank, _ = self._rest[: _COUNT_DIGITS_MAX + 1].partition(b" ")
        if not blank or not digits.isdigit():
            is_short = len(self._rest) <= _COUNT_DIGITS_MAX and digits.isdigit()
            return None if is_short else self._line()
        first, size = len(digits) + 1, int(digits)
        wanted = min(size, self._size_max)
        if len(self._rest) < first + wanted:
            return None
        message = self._rest[first : first + wanted]
        self._rest, self._skip = self._rest[first + wanted :], size - wanted
        return message

    def _line(self) -> bytes | None:
        line, end, rest = self._rest.partition(b"\n")
        if end:
            self._rest = rest
            was_cut, self._to_line_end = self._to_line_end, False
            return b"" if was_cut else line.rstrip(b"\r\0")[: self._size_max]
        if len(line) <= self._size_max:
            return None
        was_cut, self._to_line_end = self._to_line_end, True
        self._rest = b""
        return b"" if was_cut else line[: self._size_max]
