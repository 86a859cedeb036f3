"""Consumer, on the cluster that librdkafka simulates inside the process."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from penstock.client.consumer.consumer import Consumer
from penstock.client.errors import (
    ClientError,
    IllegalStateError,
    NoOffsetForPartitionError,
    SerializationError,
    WakeupError,
)
from penstock.client.interceptors import ConsumerInterceptor
from penstock.client.producer.producer import Producer
from penstock.client.values import ConsumerRecord, OffsetAndMetadata, TopicPartition
from penstock.errors import ConfigError, InvalidGroupId

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
Make = Callable[..., Consumer[Any, Any]]


@pytest.fixture
def filled() -> Iterator[str]:
    """The address of a simulated cluster whose topic has ten records in partitions 0 and 1."""
    settings = {"bootstrap.servers": "simulated", "test.mock.num.brokers": 1, "acks": "1"}
    with Producer(settings) as producer:
        for number in range(10):
            for partition in (0, 1):
                producer.send(
                    "t",
                    b"v%d" % number,
                    key=b"k",
                    partition=partition,
                    timestamp_ms=1000 + number,
                    headers=[("h", b"1")],
                )
        producer.flush(30)
        leader = producer.partitions_for("t")[0].leader
        assert leader is not None
        yield f"{leader.host}:{leader.port}"


@pytest.fixture
def make(filled: str) -> Iterator[Make]:
    """Consumers of that cluster, closed at the end."""
    made: list[Consumer[Any, Any]] = []

    def consumer(**settings: Any) -> Consumer[Any, Any]:
        settings.setdefault("auto_offset_reset", "earliest")
        made.append(Consumer({"bootstrap.servers": filled}, **settings))
        return made[-1]

    yield consumer
    for one in made:
        one.close()


def read(consumer: Consumer[Any, Any], count: int) -> list[ConsumerRecord[Any, Any]]:
    """Poll until so many records have come."""
    found: list[ConsumerRecord[Any, Any]] = []
    deadline_s = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline_s:
        found += consumer.poll(0.5)
    assert len(found) == count
    return found


def test_an_assigned_partition_is_read_from_its_beginning(make: Make) -> None:
    consumer = make(value_deserializer="string")
    consumer.assign([A])
    records = read(consumer, 10)
    assert [record.offset for record in records] == list(range(10))
    assert records[3] == ConsumerRecord(
        "t", 0, 3, 1003, "CreateTime", b"k", "v3", (("h", b"1"),), records[3].leader_epoch, 1, 2
    )
    assert consumer.position(A) == 10
    assert consumer.lag(A) == 0


def test_one_poll_returns_at_most_max_poll_records(make: Make) -> None:
    consumer = make(max_poll_records=4)
    consumer.assign([A, B])
    sizes = []
    while sum(sizes) < 20:
        sizes.append(len(consumer.poll(60.0)))
    assert max(sizes) <= 4


def test_seek_before_the_first_poll_is_where_reading_starts(make: Make) -> None:
    consumer = make()
    consumer.assign([A])
    consumer.seek(A, 7)
    assert [record.offset for record in read(consumer, 3)] == [7, 8, 9]


def test_seek_while_reading_goes_back_and_forth(make: Make) -> None:
    consumer = make()
    consumer.assign([A])
    read(consumer, 10)
    consumer.seek_to_beginning()
    assert consumer.position(A) == 0
    assert read(consumer, 10)[0].offset == 0
    consumer.seek(A, OffsetAndMetadata(8))
    assert [record.offset for record in read(consumer, 2)] == [8, 9]
    consumer.seek_to_end([A])
    assert consumer.position(A) == 10
    with pytest.raises(ValueError, match="negative"):
        consumer.seek(A, -1)


def test_a_consumer_may_start_at_the_end(make: Make) -> None:
    consumer = make(auto_offset_reset="latest")
    consumer.assign([A])
    assert consumer.position(A) == 10
    assert not consumer.poll(0.1)


def test_without_a_policy_a_start_must_be_given(make: Make) -> None:
    consumer = make(auto_offset_reset="none")
    consumer.assign([A])
    with pytest.raises(NoOffsetForPartitionError, match="Undefined offset for t-0"):
        consumer.poll(0.1)
    consumer.seek(A, 9)
    assert read(consumer, 1)[0].offset == 9


def test_a_paused_partition_is_silent_until_resumed(make: Make) -> None:
    consumer = make()
    consumer.assign([A, B])
    consumer.pause([B])
    assert {record.partition for record in read(consumer, 10)} == {0}
    assert not consumer.poll(0.05)
    assert consumer.paused() == {B}
    consumer.resume([B])
    assert {record.partition for record in read(consumer, 10)} == {1}


def test_records_of_a_poll_can_be_asked_for_by_partition(make: Make) -> None:
    consumer = make(max_poll_records=100)
    consumer.assign([A, B])
    records = consumer.poll(60.0)
    assert records.count() == len(list(records)) == len(records)
    for partition in records.partitions():
        assert {r.partition for r in records.records(partition)} == {partition.partition}
    assert len(records.records("t")) == len(records)


def test_bytes_that_cannot_be_read_are_told_until_sought_past(make: Make) -> None:
    consumer = make(value_deserializer="long")
    consumer.assign([A])
    for _ in range(2):
        with pytest.raises(SerializationError):
            while True:
                consumer.poll(1.0)
    assert consumer.position(A) == 0
    consumer.seek(A, 10)
    assert not consumer.poll(0.1)


def test_offsets_are_found_by_time_and_at_the_ends(make: Make) -> None:
    consumer = make()
    assert consumer.beginning_offsets([A]) == {A: 0}
    assert consumer.end_offsets([A, B]) == {A: 10, B: 10}
    assert [one.partition for one in consumer.partitions_for("t")][:2] == [0, 1]
    assert "t" in consumer.topics()


def test_a_poll_waits_no_longer_than_it_may(make: Make) -> None:
    consumer = make(auto_offset_reset="latest")
    consumer.assign([A])
    consumer.poll(0.2)
    assert not consumer.poll(0.05)  # One that waits for a record never comes back.


def test_another_thread_can_wake_it_up(make: Make) -> None:
    consumer = make(auto_offset_reset="latest")
    consumer.assign([A])
    timer = threading.Timer(0.05, consumer.wakeup)
    timer.start()
    with pytest.raises(WakeupError):
        consumer.poll(30)


def test_a_second_thread_is_refused(make: Make) -> None:
    consumer = make(auto_offset_reset="latest")
    consumer.assign([A])
    is_over = threading.Event()

    def keep_polling() -> None:
        while not is_over.is_set():
            with suppress(ClientError):  # It is refused itself where it comes second.
                consumer.poll(1.0)

    polling = threading.Thread(target=keep_polling)
    polling.start()
    try:
        with pytest.raises(ClientError, match="several threads"):
            while True:
                consumer.poll(0)
    finally:
        is_over.set()
        polling.join()


def test_without_a_group_there_is_no_sharing_and_no_committing(make: Make) -> None:
    consumer = make()
    for call in (lambda: consumer.subscribe(["t"]), consumer.commit, consumer.group_metadata):
        with pytest.raises(InvalidGroupId, match=r"group\.id"):
            call()


def test_a_consumer_with_nothing_to_read_says_so(make: Make) -> None:
    with pytest.raises(IllegalStateError, match="not subscribed"):
        make().poll(0)


def test_a_closed_consumer_refuses(make: Make) -> None:
    consumer = make()
    consumer.assign([A])
    consumer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        consumer.poll(0)


class Listener:
    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []
        self.then: Callable[[Any], None] = lambda _: None

    def on_partitions_assigned(self, partitions: Any) -> None:
        self.told.append(("assigned", len(partitions)))
        self.then(partitions)

    def on_partitions_revoked(self, partitions: Any) -> None:
        self.told.append(("revoked", len(partitions)))


def test_a_member_of_a_group_begins_where_its_listener_says_and_commits(make: Make) -> None:
    consumer = make(group_id="g", enable_auto_commit=False)
    listener = Listener()

    def begin(partitions: Any) -> None:
        for one in partitions:
            consumer.seek(one, 9)
        consumer.pause([one for one in partitions if one.partition == 1])

    listener.then = begin
    consumer.subscribe(re.compile("t$"), listener)
    assert [(r.partition, r.offset) for r in read(consumer, 1)] == [(0, 9)]
    assert {A, B} <= consumer.assignment()
    consumer.commit()
    assert [one and one.offset for one in consumer.committed([A, B]).values()] == [10, 9]
    told: list[Any] = []
    wanted = {A: OffsetAndMetadata(3, "note")}
    consumer.commit_async(wanted, lambda offsets, error: told.append((offsets, error)))
    deadline_s = time.monotonic() + 30
    while not told and time.monotonic() < deadline_s:
        consumer.poll(0.05)
    assert told == [(wanted, None)]
    consumer.close()
    assert [word for word, _ in listener.told] == ["assigned", "revoked"]


class Counter(ConsumerInterceptor):
    def __init__(self) -> None:
        self.consumed = 0
        self.committed: list[int] = []

    def on_consume(self, records: Any) -> Any:
        self.consumed += len(records)
        return records

    def on_commit(self, offsets: Any) -> None:
        self.committed += [one.offset for one in offsets.values()]


class Recorder:
    """librdkafka, with a note of what it was told to commit when its timer rings."""

    def __init__(self, rd: Any) -> None:
        self._rd = rd
        self.stored: list[list[int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rd, name)

    def store_offsets(self, offsets: Any) -> None:
        self.stored.append([one.offset for one in offsets])
        self._rd.store_offsets(offsets=offsets)


def test_a_poll_is_committed_by_the_next_one_and_the_last_by_closing(make: Make) -> None:
    """At least once: a crash between two polls must not lose what was being worked on."""
    counter = Counter()
    consumer = make(group_id="g", max_poll_records=1, interceptor_classes=[counter])
    consumer.assign([A])
    recorder = Recorder(consumer._rd)
    consumer._rd = recorder  # type: ignore[assignment]
    read(consumer, 1)
    assert recorder.stored == []
    read(consumer, 1)
    assert recorder.stored[-1] == [1]
    consumer.close()
    assert counter.consumed == 2
    assert counter.committed == [2]
    committed = make(group_id="g").committed([A])[A]
    assert committed is not None
    assert committed.offset == 2


def test_records_can_be_iterated(make: Make) -> None:
    consumer = make()
    consumer.assign([A])
    offsets = []
    for record in consumer:
        offsets.append(record.offset)
        if len(offsets) == 10:
            break
    assert offsets == list(range(10))


AFTER_CLOSE: dict[str, Callable[[Consumer[Any, Any]], object]] = {
    "poll": lambda c: c.poll(0),
    "iterating": lambda c: next(iter(c)),
    "subscribe": lambda c: c.subscribe(["t"]),
    "unsubscribe": lambda c: c.unsubscribe(),
    "assign": lambda c: c.assign([A]),
    "assignment": lambda c: c.assignment(),
    "subscription": lambda c: c.subscription(),
    "seek": lambda c: c.seek(A, 1),
    "seek_to_beginning": lambda c: c.seek_to_beginning(),
    "seek_to_end": lambda c: c.seek_to_end([A]),
    "position": lambda c: c.position(A),
    "pause": lambda c: c.pause([A]),
    "resume": lambda c: c.resume([A]),
    "paused": lambda c: c.paused(),
    "lag": lambda c: c.lag(A),
    "commit": lambda c: c.commit(),
    "commit_async": lambda c: c.commit_async({A: OffsetAndMetadata(1)}),
    "committed": lambda c: c.committed([A]),
    "group_metadata": lambda c: c.group_metadata(),
    "partitions_for": lambda c: c.partitions_for("t"),
    "topics": lambda c: c.topics(),
    "beginning_offsets": lambda c: c.beginning_offsets([A]),
    "end_offsets": lambda c: c.end_offsets([A]),
    "offsets_for_times": lambda c: c.offsets_for_times({A: 1}),
}


@pytest.mark.parametrize("name", AFTER_CLOSE)
def test_a_closed_consumer_says_that_it_is_closed(make: Make, name: str) -> None:
    consumer = make(group_id="g")
    consumer.assign([A])
    consumer.poll(0)
    consumer.close()
    with pytest.raises(IllegalStateError, match="This consumer has already been closed"):
        AFTER_CLOSE[name](consumer)


def test_a_loop_over_records_that_closes_the_consumer_ends(make: Make) -> None:
    consumer = make()
    consumer.assign([A])
    offsets = []
    for record in consumer:
        offsets.append(record.offset)
        consumer.close()
    assert offsets[0] == 0
    consumer.close()  # A second time is no mistake.


def test_formats_are_named_by_a_word(make: Make) -> None:
    consumer = make(key="string", value=lambda data: data.decode().upper())
    consumer.assign([A])
    record = next(iter(consumer))
    assert (record.key, record.value, record.headers["h"]) == ("k", "V0", b"1")
    assert record.timestamp == 1000


def test_a_format_that_is_given_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"value= and value.deserializer say the same"):
        Consumer({"bootstrap.servers": "h:1", "value.deserializer": "string"}, value="json")
