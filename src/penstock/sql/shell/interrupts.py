"""Ctrl-C at the prompt as a key of readline's, not as a signal.

A signal is obeyed only where it breaks off Python's wait for a key: one that comes while a key is
worked on lies there until the next key, and one that comes while names are looked up for TAB is
lost. A key waits its turn.
"""

import readline
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

INTERRUPTED: Final = "^C"  # The line that Ctrl-C leaves in place of what was typed.
_CONTROL_CHARACTERS: Final = 6  # Where tcgetattr has the keys that the terminal obeys by itself.
_NO_KEY: Final = b"\x00"


def bind_ctrl_c() -> None:
    """Ctrl-C drops the line and hands INTERRUPTED over; nothing is asked before names are shown."""
    readline.parse_and_bind(rf'"\C-c": "\C-e\C-u{INTERRUPTED}\C-m"')
    readline.parse_and_bind("set completion-query-items -1")
    readline.parse_and_bind("set page-completions off")


@contextmanager
def ctrl_c_as_key() -> Iterator[None]:
    """The terminal makes no signal of Ctrl-C in here."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    keys = [*before]
    keys[_CONTROL_CHARACTERS] = [*before[_CONTROL_CHARACTERS]]
    keys[_CONTROL_CHARACTERS][termios.VINTR] = _NO_KEY
    termios.tcsetattr(terminal, termios.TCSADRAIN, keys)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
