"""A program in a terminal of its own: a test types and looks at what is shown."""

import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from typing import Self

from tests.support.waiting import can_be_read

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x07")
_READ_BYTES = 65_536


class TerminalProcess:
    """A process whose input and output are a pseudo-terminal of a size."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 80,
        lines: int = 24,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = 120.0,
    ) -> None:
        self._timeout_s = timeout_s
        self._screen, inside = pty.openpty()
        ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        settings = {**os.environ, "TERM": "xterm", **(environment or {})}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            settings.pop(name, None)
        self.process = subprocess.Popen(
            command, stdin=inside, stdout=inside, stderr=inside, env=settings,
            start_new_session=True, preexec_fn=_take_terminal,
        )  # fmt: skip
        os.close(inside)
        self.raw = ""  # All that was shown, with its colours.

    @property
    def text(self) -> str:
        """All that was shown, without escapes."""
        return _ESCAPES.sub("", self.raw).replace("\r\n", "\n").replace("\r", "")

    def type(self, text: str) -> None:
        """Keys, one after the other; "\\n" is ENTER, "\\x03" Ctrl-C."""
        os.write(self._screen, text.encode())

    def see(self, wanted: str, *, since: int = 0) -> str:
        """Wait until something is shown; `since` is a place in the text from before."""
        give_up_s = time.monotonic() + self._timeout_s
        while wanted not in self.text[since:]:
            left_s = give_up_s - time.monotonic()
            if left_s <= 0 or not self._read(left_s):
                raise AssertionError(f"{wanted!r} was not shown:\n{self.text[since:]}")
        return self.text[since:]

    def ask(self, text: str, wanted: str) -> str:
        """Type a line and wait for something below it."""
        since = len(self.text)
        self.type(text + "\n")
        return self.see(wanted, since=since)

    def ended(self) -> int:
        """Wait for the end of the process; its exit code."""
        while self._read(self._timeout_s):
            pass
        return self.process.wait(self._timeout_s)

    def _read(self, timeout_s: float) -> bool:
        """Take what is shown; False: nothing more comes."""
        if not can_be_read(self._screen, timeout_s):
            return False
        try:
            piece = os.read(self._screen, _READ_BYTES)
        except OSError:  # Linux tells so that nobody has the terminal open any more.
            return False
        self.raw += piece.decode("utf-8", "replace")
        return bool(piece)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._screen)


def _take_terminal() -> None:
    """Ctrl-C goes to the process whose terminal it is."""
    ioctl(0, termios.TIOCSCTTY, 0)
