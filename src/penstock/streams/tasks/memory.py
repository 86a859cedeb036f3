"""A task's memory: states by key in the order of the keys' bytes, clocks and timers.

`StateMemory` is what a task needs of any memory; here is the one that is a dict.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, Protocol

from penstock.streams.steps.contract import Timer
from penstock.streams.steps.user import UserStore
from penstock.streams.values.serdes import Serde


class StateMemory(Protocol):
    """What one step, or steps that share a state, left behind."""

    clock: Any
    timers: list[Timer]  # In order.

    def state(self, key: bytes) -> Any:
        """The key's state, or None."""

    def entry(self, key: bytes) -> tuple[Any, Any]:
        """The key that these bytes are of, and its state."""

    def put(self, key_bytes: bytes, key: Any, state: Any, timers: tuple[Timer, ...] | None) -> None:
        """Take the key's new state and timers; None is no state, and the timers it had."""


# That of the class itself, which would make two tuples in Python for each comparison.
_ORDER: Final = attrgetter("at_ms", "side", "key")


def replace_timers(timers: list[Timer], before: tuple[Timer, ...], now: tuple[Timer, ...]) -> None:
    """Put a key's timers in the place of those it had, in order."""
    for timer in set(before) - set(now):
        del timers[bisect_left(timers, _ORDER(timer), key=_ORDER)]
    for timer in set(now) - set(before):
        insort(timers, timer, key=_ORDER)


@dataclass(slots=True)
class StepMemory:
    """The memory that is a dict."""

    states: dict[bytes, tuple[Any, Any]] = field(default_factory=dict)  # key bytes: key, state
    clock: Any = None
    timers: list[Timer] = field(default_factory=list)  # In order.
    timers_of: dict[bytes, tuple[Timer, ...]] = field(default_factory=dict)

    def state(self, key: bytes) -> Any:
        """The key's state, or None."""
        return self.states.get(key, (None, None))[1]

    def entry(self, key: bytes) -> tuple[Any, Any]:
        """The key that these bytes are of, and its state."""
        return self.states[key]

    def put(self, key_bytes: bytes, key: Any, state: Any, timers: tuple[Timer, ...] | None) -> None:
        """Take the key's new state and timers; None is no state, and the timers it had."""
        if state is None:
            self.states.pop(key_bytes, None)
        else:
            self.states[key_bytes] = (key, state)
        if timers is None:
            return
        before = self.timers_of.pop(key_bytes, ())
        if timers:
            self.timers_of[key_bytes] = timers
        replace_timers(self.timers, before, timers)

    def entries(self) -> Iterator[tuple[bytes, Any, Any]]:
        """All keys and states, in the order of the keys' bytes."""
        for key_bytes in sorted(self.states):
            key, state = self.states[key_bytes]
            yield key_bytes, key, state


@dataclass(slots=True)
class MemoryStore(UserStore):
    """A key-value store of the user's."""

    key_serde: Serde[Any]
    rows: dict[bytes, tuple[Any, Any]] = field(default_factory=dict)

    def get(self, key: Any) -> Any:
        """The value, or None."""
        return self.rows.get(self.key_bytes(key), (None, None))[1]

    def put(self, key: Any, value: Any) -> None:
        """Set the value; None deletes."""
        if value is None:
            self.rows.pop(self.key_bytes(key), None)
        else:
            self.rows[self.key_bytes(key)] = (key, value)

    def between(
        self, low: bytes, high: bytes | None, *, backwards: bool
    ) -> Iterator[tuple[Any, Any]]:
        """The entries whose keys' bytes lie between two, both included; None is the end."""
        inside = (key for key in self.rows if key >= low and (high is None or key <= high))
        return iter([self.rows[key] for key in sorted(inside, reverse=backwards)])

    def key_bytes(self, key: Any) -> bytes:
        """The key as it is ordered; nothing for None."""
        return self.key_serde.serialize(key) or b""
