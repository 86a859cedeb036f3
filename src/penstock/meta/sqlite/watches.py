"""Who waits for which node, told by the thread that reads or writes the file.

Which changes there were is told by whoever has the file open; here they meet the waiting.
"""

import asyncio
from collections.abc import Sequence

from penstock.meta.sqlite.tree import Changed
from penstock.meta.store import Change, WatchEvent, WatchKind, parent_and_name


class NodeWatches:
    """Who waits for which node; touched on the event loop only."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, WatchKind], list[asyncio.Future[WatchEvent]]] = {}

    def add(self, path: str, kind: WatchKind, watcher: asyncio.Future[WatchEvent]) -> None:
        if watcher.done():  # Cancelled, or its session ended, before it was placed.
            return
        self._waiting.setdefault((path, kind), []).append(watcher)
        watcher.add_done_callback(lambda done: self._forget(path, kind, done))

    def fire(self, changed: Sequence[Changed]) -> None:
        for path, change in changed if self._waiting else ():
            self._tell(path, WatchKind.DATA, change)
            if change is Change.WRITTEN:
                continue
            if change is Change.DELETED:
                self._tell(path, WatchKind.CHILDREN, change)
            parent, _ = parent_and_name(path)
            self._tell(parent or "/", WatchKind.CHILDREN, Change.CHILDREN)

    def _tell(self, path: str, kind: WatchKind, change: Change) -> None:
        for watcher in self._waiting.pop((path, kind), ()):
            if not watcher.done():
                watcher.set_result(WatchEvent(path, change))

    def _forget(self, path: str, kind: WatchKind, watcher: asyncio.Future[WatchEvent]) -> None:
        waiting = self._waiting.get((path, kind))
        if waiting is not None and watcher in waiting:
            waiting.remove(watcher)
            if not waiting:
                del self._waiting[path, kind]
