"""What was found or made before, within a bound: the entry unused for longest goes first."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """A cache for several threads. Whatever is made, is made by one thread at a time."""

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()
        self._making = threading.RLock()  # Making one thing may need another.

    def get(self, key: K) -> V | None:
        """What is there under this key."""
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        """Remember this."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._entries_max:
                self._entries.popitem(last=False)

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """What is there, or what is made now; what fails is not remembered."""
        found = self.get(key)
        if found is not None:
            return found
        with self._making:
            found = self.get(key)
            if found is None:
                found = make()
                self.put(key, found)
            return found

    def __len__(self) -> int:
        return len(self._entries)
