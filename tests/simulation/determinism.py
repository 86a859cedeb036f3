"""Everything a process takes from outside itself, taken from the seed instead.

Import this before anything of the product: some of it keeps `os.urandom` as a default argument.
Without a run going on, all of it passes through to the real thing. What cannot be replaced from
within, the hashes of strings, is fixed by PYTHONHASHSEED, which `python -m tests.simulation` sets.
"""

import concurrent.futures
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

real_time_s = time.perf_counter  # For the report; a simulation never looks at it.

_real_urandom = os.urandom
_bytes: random.Random | None = None


def _urandom(size: int) -> bytes:
    return _real_urandom(size) if _bytes is None else _bytes.randbytes(size)


class InOrder(dict[Any, None]):
    """A set that keeps the order in which things came, whatever their addresses are."""

    def add(self, one: Any) -> None:
        self[one] = None

    def discard(self, one: Any) -> None:
        self.pop(one, None)


class InlineExecutor:
    """Does at once, and in order, what a pool of threads would do at some time."""

    def __init__(self, *arguments: object, **named: object) -> None:
        """However many threads were asked for."""

    def __enter__(self) -> "InlineExecutor":
        return self

    def __exit__(self, *error: object) -> None:
        """There is nobody to wait for."""

    def submit(self, work: Callable[..., T], *arguments: Any, **named: Any) -> "Future[T]":
        future: Future[T] = Future()
        try:
            future.set_result(work(*arguments, **named))
        except Exception as error:  # noqa: BLE001 - whoever holds the future gets it
            future.set_exception(error)
        return future

    def map(self, work: Callable[..., T], *rows: Iterable[Any]) -> Iterator[T]:
        return iter([work(*row) for row in zip(*rows, strict=False)])

    def shutdown(self, *arguments: object, **named: object) -> None:
        """There is nothing to stop."""


def install(seed: int, *, monotonic_s: Callable[[], float], wall_s: Callable[[], float]) -> None:
    """From here to the end of this operating system process, for the one run it is made for."""
    global _bytes
    _bytes = random.Random(f"bytes {seed}")
    random.seed(f"global {seed}")
    time.monotonic = monotonic_s
    time.perf_counter = monotonic_s
    time.time = wall_s
    time.monotonic_ns = lambda: int(monotonic_s() * 1e9)
    time.perf_counter_ns = lambda: int(monotonic_s() * 1e9)
    time.time_ns = lambda: int(wall_s() * 1e9)
    concurrent.futures.ThreadPoolExecutor = InlineExecutor  # type: ignore[misc,assignment]


os.urandom = _urandom
random._urandom = _urandom  # type: ignore[attr-defined] # What `secrets` draws from.
