"""Records on the way out of a topic: put, flushed, committed, refused, paused."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from penstock.client.values import ConsumerRecord, OffsetAndMetadata, TopicPartition
from penstock.connect.errors.kinds import ConnectError, RetriableConnectError
from penstock.connect.plugins.contract import Config, SinkTask
from penstock.connect.records import SinkRecord
from penstock.connect.running.sink_loop import SinkContext, SinkLoop

AT = TopicPartition("t", 0)


class Steps:
    def to_sink(self, record: "ConsumerRecord[bytes, bytes]") -> SinkRecord | None:
        if record.value == b"bad":
            return None
        return SinkRecord(topic=record.topic, partition=0, value=record.value, offset=record.offset)

    def settle(self) -> None:
        return


class Channel:
    def __init__(self) -> None:
        self.stopping, self.paused = threading.Event(), threading.Event()
        self.changed = threading.Event()
        self.counts: Counter[str] = Counter()
        self.states: list[str] = []

    def tell_state(self, state: str) -> None:
        self.states.append(state)

    def tell_topic(self, topic: str) -> None:
        return

    def count(self, metric: str, number: int = 1) -> None:
        self.counts[metric] += number

    def tell_counts(self) -> None:
        return


class Group:
    """A consumer that gives out values, one poll after the other, and then ends the loop."""

    def __init__(self, polls: list[list[bytes]], channel: Channel) -> None:
        self.polls = list(polls)
        self.commits: list[dict[TopicPartition, int]] = []
        self.paused: set[TopicPartition] = set()
        self.sought: list[tuple[TopicPartition, int]] = []
        self._channel = channel
        self._next = 0

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset({AT})

    def poll(self, timeout_s: float) -> "list[ConsumerRecord[bytes, bytes]]":
        if self.paused:
            return []
        if not self.polls:
            self._channel.stopping.set()
            return []
        found = []
        for value in self.polls.pop(0):
            found.append(ConsumerRecord("t", 0, self._next, 0, "CreateTime", None, value))
            self._next += 1
        return found

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.commits.append({at: one.offset for at, one in offsets.items()})

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused |= set(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused -= set(partitions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.sought.append((partition, offset))


class Task(SinkTask):
    def __init__(self, refusals: int = 0) -> None:
        self.values: list[Any] = []
        self.flushed: list[int] = []
        self.closed: list[list[TopicPartition]] = []
        self._refusals = refusals

    def start(self, config: Config) -> None:
        return

    def put(self, records: list[SinkRecord]) -> None:
        if self._refusals:
            self._refusals -= 1
            raise RetriableConnectError("busy")
        self.values += [one.value for one in records]

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.flushed.append(offsets.get(AT, 0))

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        self.closed.append(list(partitions))


def loop_of(
    task: SinkTask, polls: list[list[bytes]], flush_s: float = 0.0
) -> tuple[SinkLoop, Group, Channel, SinkContext]:
    channel = Channel()
    group = Group(polls, channel)
    context = SinkContext({}, group, None)  # type: ignore[arg-type]
    context.set_timeout_ms(0)
    loop = SinkLoop(task, group, context, Steps(), channel, flush_s=flush_s)  # type: ignore[arg-type]
    return loop, group, channel, context


def test_offsets_are_committed_after_the_flush_that_covers_them() -> None:
    task = Task()
    loop, group, _, _ = loop_of(task, [[b"a", b"b"], [b"c"]])
    loop.run()
    assert task.values == [b"a", b"b", b"c"]
    assert group.commits == [{AT: 2}, {AT: 3}]
    assert task.flushed[:2] == [2, 3]
    assert task.closed == [[AT]]


def test_a_record_that_was_put_aside_is_passed() -> None:
    task = Task()
    loop, group, _, _ = loop_of(task, [[b"a", b"bad"]])
    loop.run()
    assert (task.values, group.commits) == ([b"a"], [{AT: 2}])


def test_what_is_refused_for_now_is_put_again_and_nothing_is_read_meanwhile() -> None:
    task = Task(refusals=3)
    loop, group, _, _ = loop_of(task, [[b"a"], [b"b"]])
    loop.run()
    assert task.values == [b"a", b"b"]
    assert group.commits[-1] == {AT: 2}
    assert not group.paused


def test_nothing_is_committed_before_it_is_put() -> None:
    task = Task(refusals=10**6)
    loop, group, channel, _ = loop_of(task, [[b"a"]])
    original = group.poll
    rounds = [0]

    def poll(timeout_s: float) -> "list[ConsumerRecord[bytes, bytes]]":
        rounds[0] += 1
        if rounds[0] > 5:
            channel.stopping.set()
        return original(timeout_s)

    group.poll = poll  # type: ignore[method-assign]
    loop.run()
    assert group.commits == []


def test_a_target_that_knows_better_says_where_to_go_on() -> None:
    loop, group, _, context = loop_of(Task(), [[b"a"]])
    context.seek({AT: 7})
    loop.run()
    assert group.sought == [(AT, 7)]


def test_partitions_that_go_are_committed_and_closed() -> None:
    task = Task()
    loop, group, _, _ = loop_of(task, [[b"a"]], flush_s=1000)
    loop._round()
    assert group.commits == []
    loop.on_partitions_revoked([AT])
    assert (group.commits, task.closed) == ([{AT: 1}], [[AT]])
    loop.on_partitions_lost([AT])
    assert len(group.commits) == 1


def test_what_a_task_raises_while_partitions_come_ends_it() -> None:
    class Refusing(Task):
        def open(self, partitions: Iterable[TopicPartition]) -> None:
            raise ConnectError("no")

    loop, _, _, _ = loop_of(Refusing(), [[b"a"]])
    loop.on_partitions_assigned([AT])
    with pytest.raises(ConnectError, match="no"):
        loop.run()
