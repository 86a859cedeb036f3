"""Records and their offsets on the way out: acknowledged, or in transactions."""

import threading
from collections import Counter
from collections.abc import MutableMapping, Sequence
from typing import Any

import pytest

from penstock.client.producer.polled import Outcome, StoredAt
from penstock.client.values import ProducerRecord
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.plugins.contract import Config, SourceTask
from penstock.connect.records import SourceRecord
from penstock.connect.running.passed_places import encode_source_offset
from penstock.connect.running.source_loop import (
    AcknowledgedSender,
    Boundary,
    SourceLoop,
    SourceTransactions,
    TransactionalSender,
)
from penstock.connect.store.config_records import LogEntry
from penstock.errors import PenstockError


def record(n: int) -> SourceRecord:
    return SourceRecord(
        topic="t", value=n, source_partition={"p": 0}, source_offset={"position": n}
    )


class Steps:
    def to_producer(self, record: SourceRecord) -> "ProducerRecord[bytes, bytes] | None":
        if record.value < 0:
            return None
        return ProducerRecord(topic=record.topic, value=str(record.value).encode())


class Channel:
    def __init__(self) -> None:
        self.stopping, self.paused = threading.Event(), threading.Event()
        self.changed = threading.Event()
        self.counts: Counter[str] = Counter()
        self.states: list[str] = []
        self.topics: list[str] = []
        self.kept: list[LogEntry] = []

    def tell_state(self, state: str) -> None:
        self.states.append(state)
        self.paused.clear()

    def count(self, metric: str, number: int = 1) -> None:
        self.counts[metric] += number

    def tell_counts(self) -> None:
        return

    def verify(self) -> None:
        return

    def tell_topic(self, topic: str) -> None:
        self.topics.append(topic)

    def ask_reconfiguration(self) -> None:
        return

    def keep_offsets(self, records: Sequence[LogEntry]) -> None:
        self.kept += records

    keep = keep_offsets


class Broker:
    """A producer whose records are there when a test says so, or its transaction ends."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, Any, int]] = []
        self.committed: list[list[Any]] = []
        self.aborted = 0
        self.served = 0
        self._open: list[Any] = []

    def send(
        self, record: ProducerRecord[bytes, bytes], outcomes: MutableMapping[int, Any], number: int
    ) -> None:
        content = (record.topic, record.value)
        self.sent.append((content, outcomes, number))
        self._open.append(content)

    def acknowledge(self, index: int) -> None:
        _, outcomes, number = self.sent[index]
        outcomes[number] = StoredAt(0, index, 0)

    def refuse(self, index: int, error: PenstockError) -> None:
        _, outcomes, number = self.sent[index]
        outcomes[number] = error

    def serve(self) -> None:
        self.served += 1

    def wait_for(
        self, outcomes: MutableMapping[int, Any], number: int, timeout_s: float
    ) -> Outcome:
        self.flush(timeout_s)
        found: Outcome = outcomes[number]
        return found

    def flush(self, timeout_s: float) -> None:
        for index in range(len(self.sent)):
            self.acknowledge(index)

    def begin_transaction(self) -> None:
        assert not self._open, "the last transaction is still open"

    def commit_transaction(self) -> None:
        self.flush(0)
        self.committed.append(self._open)
        self._open = []

    def abort_transaction(self) -> None:
        self.aborted += 1
        self._open = []


class Task(SourceTask):
    def __init__(self, polls: Sequence[list[SourceRecord] | Exception] = ()) -> None:
        self.polls = list(polls)
        self.told: list[tuple[int, int | None]] = []
        self.commits = 0
        self.channel: Channel | None = None

    def start(self, config: Config) -> None:
        return

    def poll(self) -> list[SourceRecord] | None:
        if not self.polls:
            assert self.channel is not None
            self.channel.stopping.set()
            return None
        found = self.polls.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def commit_record(
        self, record: SourceRecord, *, partition: int | None, offset: int | None
    ) -> None:
        self.told.append((record.value, offset))

    def commit(self) -> None:
        self.commits += 1


def acknowledged(task: Task, broker: Broker, channel: Channel) -> AcknowledgedSender:
    return AcknowledgedSender(
        task, "c", broker, Steps(), channel, channel, flush_s=0.0  # type: ignore[arg-type]
    )  # fmt: skip


def transactional(task: Task, broker: Broker, **more: Any) -> TransactionalSender:
    chosen = {"boundary": Boundary.POLL, "interval_s": 10.0, **more}
    return TransactionalSender(
        task, "c", broker, Steps(), Channel(), offset_topic="offsets", **chosen  # type: ignore[arg-type]
    )  # fmt: skip


def test_offsets_follow_the_first_records_that_are_acknowledged() -> None:
    task, broker, channel = Task(), Broker(), Channel()
    sender = acknowledged(task, broker, channel)
    sender.send([record(1), record(2), record(3)])
    broker.acknowledge(2)
    sender.tend()
    assert (channel.kept, task.told) == ([], [])
    broker.acknowledge(0)
    sender.tend()
    assert [note.value for note in channel.kept] == [b'{"position":1}']
    broker.acknowledge(1)
    sender.tend()
    assert [note.value for note in channel.kept] == [b'{"position":1}', b'{"position":3}']
    assert (task.told, task.commits) == ([(1, 0), (2, 1), (3, 2)], 2)


def test_a_record_that_was_dropped_moves_the_offset_on() -> None:
    task, broker, channel = Task(), Broker(), Channel()
    sender = acknowledged(task, broker, channel)
    sender.send([record(-5)])
    sender.tend()
    assert (broker.sent, task.told) == ([], [(-5, None)])
    assert channel.kept[0].value == b'{"position":-5}'


def test_a_record_that_no_broker_takes_ends_the_task() -> None:
    task, broker, channel = Task(), Broker(), Channel()
    sender = acknowledged(task, broker, channel)
    sender.send([record(1)])
    broker.refuse(0, PenstockError("too large"))
    with pytest.raises(PenstockError, match="too large"):
        sender.tend()
    assert channel.kept == []


def test_a_transaction_has_the_records_of_a_poll_and_their_offset() -> None:
    task, broker = Task(), Broker()
    sender = transactional(task, broker)
    sender.send([record(1), record(2)])
    assert broker.committed == [[("t", b"1"), ("t", b"2"), ("offsets", b'{"position":2}')]]
    assert (task.told, task.commits) == ([(1, 0), (2, 1)], 1)


def test_by_interval_several_polls_are_one_transaction() -> None:
    task, broker, now = Task(), Broker(), [0.0]
    sender = transactional(task, broker, boundary=Boundary.INTERVAL, clock=lambda: now[0])
    sender.send([record(1)])
    sender.tend()
    sender.send([record(2)])
    assert broker.committed == []
    now[0] = 10.0
    sender.tend()
    assert broker.committed == [[("t", b"1"), ("t", b"2"), ("offsets", b'{"position":2}')]]
    sender.send([record(3)])
    sender.tend(at_end=True)
    assert len(broker.committed) == 2


def test_a_connector_ends_transactions_where_it_says() -> None:
    task, broker, wishes = Task(), Broker(), SourceTransactions()
    sender = transactional(task, broker, boundary=Boundary.CONNECTOR, wishes=wishes)
    one, two, three = record(1), record(2), record(3)
    wishes.commit_transaction(one)
    wishes.abort_transaction(two)
    sender.send([one, two, three])
    assert broker.committed == [
        [("t", b"1"), ("offsets", b'{"position":1}')],
        [("offsets", b'{"position":2}')],
    ]
    sender.tend(at_end=True)
    assert len(broker.committed) == 2, "what it did not end is read again"
    wishes.commit_transaction()
    sender.send([record(4)])
    assert broker.committed[-1][:2] == [("t", b"3"), ("t", b"4")]


def test_a_task_that_raises_has_its_transaction_aborted() -> None:
    channel, broker = Channel(), Broker()
    task = Task([[record(1)], ConnectError("away")])
    task.channel = channel
    sender = transactional(task, broker, boundary=Boundary.INTERVAL)
    with pytest.raises(ConnectError, match="away"):
        SourceLoop(task.poll, sender, channel).run()
    assert (broker.aborted, broker.committed) == (1, [])


def test_a_pause_commits_what_there_is_and_is_told() -> None:
    channel, broker = Channel(), Broker()
    task = Task([[record(1)]])
    task.channel = channel
    channel.paused.set()
    SourceLoop(task.poll, transactional(task, broker), channel).run()
    assert channel.states[0] == "PAUSED"
    assert len(broker.committed) == 1


def test_an_offset_that_json_cannot_keep_is_refused() -> None:
    bad = SourceRecord(topic="t", source_partition={"p": [1]}, source_offset={})
    with pytest.raises(ConnectError, match="partition"):
        encode_source_offset("c", bad)
    none = SourceRecord(topic="t", source_partition=None, source_offset=None)
    assert encode_source_offset("c", none) is None
