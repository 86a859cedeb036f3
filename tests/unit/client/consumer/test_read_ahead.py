"""Messages in waiting: errors in their turn, paused partitions kept, bad bytes told again."""

import time
from typing import Any

import confluent_kafka
import pytest

from penstock.client.consumer.read_ahead import ReadAhead
from penstock.client.errors import SerializationError
from penstock.client.values import TopicPartition
from penstock.errors import TopicAuthorization

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Fetched:
    """librdkafka with messages ready."""

    def __init__(self, *messages: tuple[int, int]) -> None:
        self.ready = [
            confluent_kafka.Message(topic="t", partition=partition, offset=offset)
            for partition, offset in messages
        ]

    def poll(self, timeout: float) -> Any:
        return self.ready.pop(0) if self.ready else None

    def consume(self, count: int, timeout: float) -> list[Any]:
        taken, self.ready = self.ready[:count], self.ready[count:]
        return taken


def read_ahead(*messages: tuple[int, int], count_max: int = 10) -> ReadAhead:
    made = ReadAhead(Fetched(*messages), count_max)  # type: ignore[arg-type]
    fill(made)
    return made


def fill(made: ReadAhead, *, paused: Any = (), wait_s: float = 0.0) -> None:
    made.fill(time.monotonic() + wait_s, paused=paused, interrupt=lambda: None)


def offset(message: confluent_kafka.Message) -> int | None:
    return message.offset()


def test_a_poll_takes_at_most_so_many() -> None:
    made = read_ahead((0, 1), (0, 2), (0, 3), count_max=2)
    assert made.take(offset, paused=()) == [1, 2]
    fill(made)
    assert made.take(offset, paused=()) == [3]


def test_paused_partitions_wait_in_order() -> None:
    made = read_ahead((0, 1), (1, 5), (0, 2), (1, 6))
    assert made.take(offset, paused={A}) == [5, 6]
    assert made.take(offset, paused=()) == [1, 2]


def test_an_error_is_told_after_the_records_before_it() -> None:
    made = read_ahead((0, 1), (0, 2), (0, 3))

    def decode(message: confluent_kafka.Message) -> int | None:
        if message.offset() == 2:
            raise TopicAuthorization("no")
        return message.offset()

    assert made.take(decode, paused=()) == [1]
    with pytest.raises(TopicAuthorization):
        made.take(decode, paused=())
    assert made.take(decode, paused=()) == [3]


def test_bytes_that_cannot_be_read_stay_until_they_are_sought_away() -> None:
    made = read_ahead((0, 1), (1, 2))

    def decode(message: confluent_kafka.Message) -> int | None:
        if message.offset() == 1:
            raise SerializationError("bad")
        return message.offset()

    for _ in range(2):
        with pytest.raises(SerializationError):
            made.take(decode, paused=())
    made.drop({A})
    assert made.take(decode, paused=()) == [2]


def test_waiting_ends_at_the_deadline() -> None:
    made = ReadAhead(Fetched(), 10)  # type: ignore[arg-type]
    start_s = time.monotonic()
    fill(made, wait_s=0.03)
    assert time.monotonic() - start_s >= 0.03


def test_what_waits_is_enough_unless_it_is_paused() -> None:
    rd = Fetched((0, 1))
    made = ReadAhead(rd, 10)  # type: ignore[arg-type]
    fill(made)
    rd.ready = Fetched((1, 5)).ready
    fill(made)
    assert len(rd.ready) == 1
    fill(made, paused={A})
    assert rd.ready == []


def test_a_wait_can_be_interrupted() -> None:
    made = ReadAhead(Fetched(), 10)  # type: ignore[arg-type]

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.fill(time.monotonic() + 60, paused=(), interrupt=interrupt)
