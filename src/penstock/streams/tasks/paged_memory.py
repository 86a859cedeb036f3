"""A task's memory in pages: what its steps remember between two batches of a host.

States are decoded when they are asked for and encoded once at the end of the batch, however often
a key changed. What changed is told then, for the changelog.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.streams.steps.contract import Timer
from penstock.streams.steps.user import UserStore
from penstock.streams.tasks.memory import replace_timers
from penstock.streams.tasks.pages import Pages, PageShelf
from penstock.streams.tasks.state_values import decoded, encoded
from penstock.streams.values.serdes import Serde

ABOUT = -1  # The page that tells of the others.


Lapses = Callable[[Any, Any, Any], dict[Any, Any]]  # The state before and after, and the clock.


class Changed(NamedTuple):
    """A key's state before the batch, as it lay in its page, and after it."""

    key: bytes
    before: bytes | None
    after: Any
    data: bytes | None  # What is after, as it lies in its page.
    lapsed: dict[Any, Any]  # Windows that were let go meanwhile, as they were at last.


def about_page(
    clock: Any,
    timers: Iterable[Timer],
    count: int,
    size_bytes: int,
    value_serde: Serde[Any] | None,
) -> bytes:
    """What the page `ABOUT` holds: the clock, who waits, and how many pages of what size are."""
    waiting = [(timer.at_ms, timer.side, timer.key) for timer in timers]
    return encoded((clock, waiting, count, size_bytes), value_serde)


@dataclass(slots=True)
class PagedMemory:
    """States by key, decoded as they are needed."""

    shelf: PageShelf
    key_serde: Serde[Any]
    value_serde: Serde[Any] | None
    lapses: Lapses = lambda before, after, clock: {}  # Which windows a new state has let go.
    clock: Any = None
    timers: list[Timer] = field(default_factory=list)
    _pages: Pages = field(init=False)
    _now: dict[bytes, Any] = field(default_factory=dict)  # Of the keys that were asked for.
    _touched: dict[bytes, None] = field(default_factory=dict)  # Keys that may have changed.
    _timers_of: dict[bytes, tuple[Timer, ...]] = field(default_factory=dict)
    _lapsed: dict[bytes, dict[Any, Any]] = field(default_factory=dict)
    _about: bytes | None = None

    def __post_init__(self) -> None:
        self._pages = Pages(self.shelf)
        self._about = self.shelf.load(ABOUT)
        if self._about is not None:
            self.clock, waiting, self._pages.count, self._pages.size_bytes = decoded(
                self._about, self.value_serde
            )
            self.timers = [Timer(*one) for one in waiting]
            for timer in self.timers:
                self._timers_of[timer.key] = (*self._timers_of.get(timer.key, ()), timer)

    def state(self, key: bytes) -> Any:
        """The key's state, or None."""
        try:
            return self._now[key]
        except KeyError:
            data = self._pages.get(key)
            state = self._now[key] = None if data is None else decoded(data, self.value_serde)
            return state

    def entry(self, key: bytes) -> tuple[Any, Any]:
        """The key that these bytes are of, and its state."""
        return self.key_serde.deserialize(key), self.state(key)

    def put(self, key_bytes: bytes, key: Any, state: Any, timers: tuple[Timer, ...] | None) -> None:
        """Take the key's new state and timers; None is no state, and the timers it had."""
        before = self.state(key_bytes)
        if state is not before:
            gone = self.lapses(before, state, self.clock)
            if gone:
                self._lapsed.setdefault(key_bytes, {}).update(gone)
            self.set(key_bytes, state)
        if timers is None:
            return
        had = self._timers_of.pop(key_bytes, ())
        if timers:
            self._timers_of[key_bytes] = timers
        replace_timers(self.timers, had, timers)

    def all_keys(self) -> list[bytes]:
        """All keys that have a state now, in order; this reads every page."""
        stored = {key for key, _ in self._pages.entries()} | set(self._now)
        return sorted(key for key in stored if self.state(key) is not None)

    def set(self, key: bytes, state: Any) -> None:
        """Take the key's new state, which may be the old object with another content."""
        self._now[key] = state
        self._touched[key] = None

    def stored(self, key: bytes) -> bytes | None:
        """The key's state as it lies in its page, for who decodes it himself."""
        return self._pages.get(key)

    def store(self, key: bytes, data: bytes) -> None:
        """Put the key's state into its page; nobody may have asked for it by `state`."""
        self._pages.put(key, data)

    def flush(self) -> Iterator[Changed]:
        """Write what changed back to its pages; one change for each key that is other than it was.

        Bytes are compared, because a user's function may change an aggregate in place. It is done
        when all changes are taken.
        """
        for key in self._touched:
            after, before = self._now[key], self._pages.get(key)
            data = None if after is None else encoded(after, self.value_serde)
            lapsed = self._lapsed.get(key, {})
            if data != before or lapsed:
                self._pages.put(key, data)
                yield Changed(key, before, after, data, lapsed)
        self._touched, self._lapsed = {}, {}
        self._pages.flush()
        about = about_page(
            self.clock, self.timers, self._pages.count, self._pages.size_bytes, self.value_serde
        )
        if about != self._about:
            self.shelf.save(ABOUT, about)
            self._about = about


@dataclass(slots=True)
class PagedStore(UserStore):
    """A key-value store of the user's, in pages."""

    memory: PagedMemory

    def get(self, key: Any) -> Any:
        """The value, or None."""
        return self.memory.state(self.key_bytes(key))

    def put(self, key: Any, value: Any) -> None:
        """Set the value; None deletes."""
        self.memory.set(self.key_bytes(key), value)

    def between(
        self, low: bytes, high: bytes | None, *, backwards: bool
    ) -> Iterator[tuple[Any, Any]]:
        """The entries whose keys' bytes lie between two, both included; None is the end."""
        keys = self.memory.all_keys()
        inside = [key for key in keys if key >= low and (high is None or key <= high)]
        for key in reversed(inside) if backwards else inside:
            entry = self.memory.entry(key)
            if entry[1] is not None:  # Deleted while it was gone through.
                yield entry

    def key_bytes(self, key: Any) -> bytes:
        """The key as it is ordered; nothing for None."""
        return self.memory.key_serde.serialize(key) or b""
