"""Which topic's record is next: the one whose head has the smallest timestamp.

Kafka Streams keeps its queues in a heap that decides ties by its own shape. Records at one time in
two repartition topics are common (a foreign-key join makes them), so the heap is the same here.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Timed(Protocol):
    """What waits: a record, or a row that will be one."""

    @property
    def timestamp_ms(self) -> int: ...


T = TypeVar("T", bound=Timed)


@dataclass(slots=True)
class TopicQueues(Generic[T]):
    """Records that wait, by topic."""

    waiting: dict[str, deque[T]] = field(default_factory=dict)
    _heap: list[str] = field(default_factory=list)

    def add(self, topic: str, record: T) -> None:
        """Put a record behind the others of its topic."""
        queue = self.waiting.setdefault(topic, deque())
        queue.append(record)
        if len(queue) == 1:
            self._offer(topic)

    def take(self) -> tuple[str, T] | None:
        """The next record and its topic; None when nothing waits."""
        if not self._heap:
            return None
        topic = self._poll()
        record = self.waiting[topic].popleft()
        if self.waiting[topic]:
            self._offer(topic)
        return topic, record

    def _head_ms(self, topic: str) -> int:
        return self.waiting[topic][0].timestamp_ms

    def _offer(self, topic: str) -> None:
        """Up from the end while the parent is later."""
        place = len(self._heap)
        self._heap.append(topic)
        while place > 0:
            parent = (place - 1) // 2
            if self._head_ms(topic) >= self._head_ms(self._heap[parent]):
                break
            self._heap[place] = self._heap[parent]
            place = parent
        self._heap[place] = topic

    def _poll(self) -> str:
        """The first; the last goes down from its place while a child is earlier."""
        first, last = self._heap[0], self._heap.pop()
        if not self._heap:
            return first
        place, size = 0, len(self._heap)
        while place < size // 2:
            child = 2 * place + 1
            if child + 1 < size and self._is_later(child, child + 1):
                child += 1
            if self._head_ms(last) <= self._head_ms(self._heap[child]):
                break
            self._heap[place] = self._heap[child]
            place = child
        self._heap[place] = last
        return first

    def _is_later(self, one: int, other: int) -> bool:
        return self._head_ms(self._heap[one]) > self._head_ms(self._heap[other])
