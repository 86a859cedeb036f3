"""Waiting for something to become true, by looking again and again within a limit.

Tests never sleep for luck: they name what they wait for, go on as soon as it holds, and say what
was missing when it never does. A limit only ends what hangs: a machine with ten times the work it
can do needs a minute for what otherwise takes a second.
"""

import math
import select
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

Seen = TypeVar("Seen")


class HasFileno(Protocol):
    """A descriptor's owner."""

    def fileno(self) -> int: ...


def eventually(
    look: Callable[[], Seen],
    *,
    timeout_s: float = 60.0,
    every_s: float = 0.02,
    what: str = "",
    moving: Callable[[], object] = lambda: None,
) -> Seen:
    """The first true value that `look` gives; AssertionError when there is none in time.

    A `look` that raises AssertionError or OSError counts as not yet. The time begins anew whenever
    `moving` answers something else: what goes on may be slow.
    """
    give_up_s, moved = time.monotonic() + timeout_s, moving()
    last: object = None
    while True:
        try:
            seen = look()
            if seen:
                return seen
            last = seen
        except (AssertionError, OSError) as error:
            last = error
        if (now := moving()) != moved:
            give_up_s, moved = time.monotonic() + timeout_s, now
        if time.monotonic() >= give_up_s:
            name = what or getattr(look, "__name__", "the condition")
            raise AssertionError(f"{name} did not hold within {timeout_s:g} s; last: {last!r}")
        time.sleep(every_s)


def can_be_read(source: HasFileno | int, timeout_s: float) -> bool:
    """Whether bytes or the end come in time; also behind a thousand open files, unlike select."""
    poller = select.poll()
    poller.register(source, select.POLLIN)
    return bool(poller.poll(math.ceil(timeout_s * 1000)))
