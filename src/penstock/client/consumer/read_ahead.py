"""Messages that librdkafka has handed over and the caller has not seen yet.

A poll takes as many as it may return; what cannot be returned now (the partition is paused, or the
bytes before it could not be read) waits here, until it is asked for again or sought away.
"""

import time
from collections import deque
from collections.abc import Callable, Collection
from typing import TypeVar

import confluent_kafka

from penstock.client import librdkafka
from penstock.client.errors import SerializationError
from penstock.client.values import TopicPartition
from penstock.errors import PenstockError

R = TypeVar("R")

_SLICE_S = 0.1  # How long one call into librdkafka may last, so that signals and wakeups act.


class ReadAhead:
    """A queue in front of a consumer."""

    def __init__(self, rd: confluent_kafka.Consumer, count_max: int) -> None:
        self._rd = rd
        self._count_max = count_max
        self._waiting: deque[confluent_kafka.Message] = deque()

    def fill(
        self,
        deadline_s: float,
        *,
        paused: Collection[TopicPartition],
        interrupt: Callable[[], None],
    ) -> None:
        """Wait for a message, then take along what is there; `interrupt` may raise meanwhile."""
        if any(partition_of(message) not in paused for message in self._waiting):
            return
        while True:
            interrupt()
            left_s = max(0.0, deadline_s - time.monotonic())
            first = librdkafka.call(self._rd.poll, min(_SLICE_S, left_s))
            if first is not None:
                self._waiting.append(first)
                break
            if time.monotonic() >= deadline_s:
                return
        if self._count_max > 1:
            more = librdkafka.call(self._rd.consume, self._count_max - 1, timeout=0)
            self._waiting.extend(more)

    def take(
        self,
        decode: Callable[[confluent_kafka.Message], R | None],
        *,
        paused: Collection[TopicPartition],
    ) -> list[R]:
        """Decode what may be returned now, at most as many as a poll may return.

        An error is raised only once it is first in line. A message whose bytes cannot be read stays
        first, so that every poll tells of it until somebody seeks past it, as in Kafka.
        """
        taken: list[R] = []
        kept: list[confluent_kafka.Message] = []
        try:
            while self._waiting and len(taken) < self._count_max:
                message = self._waiting.popleft()
                if partition_of(message) in paused:
                    kept.append(message)
                    continue
                try:
                    record = decode(message)
                except PenstockError as error:
                    if taken or isinstance(error, SerializationError):
                        self._waiting.appendleft(message)
                    if taken:
                        break
                    raise
                if record is not None:
                    taken.append(record)
        finally:
            self._waiting.extendleft(reversed(kept))
        return taken

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what is of partitions that went, or that are read elsewhere now."""
        kept = [message for message in self._waiting if partition_of(message) not in partitions]
        self._waiting = deque(kept)


def partition_of(message: confluent_kafka.Message) -> TopicPartition:
    """Where a message comes from."""
    return TopicPartition(message.topic() or "", message.partition() or 0)
