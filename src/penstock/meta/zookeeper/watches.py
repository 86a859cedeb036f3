"""Who waits for which node in ZooKeeper, also over a break of the connection.

ZooKeeper forgets the watches of a connection that ends. Each watch therefore keeps a mark of its
node as it was; after a reconnect it is placed again, and a mark that differs tells what was missed.
"""

from asyncio import Future
from collections.abc import Iterator
from typing import NamedTuple

from penstock.meta.store import Change, WatchEvent, WatchKind

Key = tuple[str, WatchKind]


class Mark(NamedTuple):
    """A node at one moment, as far as one kind of watch can tell."""

    czxid: int
    changed: int  # DATA: the last write. CHILDREN: the last coming or going of a child.


class ZkWatches:
    """Touched on the event loop only. A mark of None means: there is no node."""

    def __init__(self) -> None:
        self._waiting: dict[Key, dict[Future[WatchEvent], Mark | None]] = {}

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._waiting))

    def add(self, key: Key, watcher: Future[WatchEvent], mark: Mark | None) -> None:
        if watcher.done():  # Cancelled, or its session ended, before it was placed.
            return
        self._waiting.setdefault(key, {})[watcher] = mark
        watcher.add_done_callback(lambda done: self._forget(key, done))

    def tell(self, key: Key, change: Change) -> None:
        """All who wait for it; they are told once."""
        for watcher in self._waiting.pop(key, {}):
            _resolve(watcher, key, change)

    def compare(self, key: Key, now: Mark | None) -> None:
        """Tell those whose node is not as it was when they began to watch."""
        for watcher, before in tuple(self._waiting.get(key, {}).items()):
            change = missed(key[1], before, now)
            if change is not None:
                _resolve(watcher, key, change)

    def end(self) -> None:
        """The session is over: nothing more will be told."""
        for key in self:
            self.tell(key, Change.SESSION_LOST)

    def _forget(self, key: Key, watcher: Future[WatchEvent]) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None and watcher in waiting:
            del waiting[watcher]
            if not waiting:
                del self._waiting[key]


def missed(kind: WatchKind, before: Mark | None, now: Mark | None) -> Change | None:
    """The first change that a watch cannot have heard; None: none that left a trace."""
    if before == now:
        return None
    if before is None:
        return Change.CREATED
    if now is None or now.czxid != before.czxid:
        return Change.DELETED  # And perhaps made again since.
    return Change.WRITTEN if kind is WatchKind.DATA else Change.CHILDREN


def _resolve(watcher: Future[WatchEvent], key: Key, change: Change) -> None:
    if not watcher.done():
        watcher.set_result(WatchEvent(key[0], change))
