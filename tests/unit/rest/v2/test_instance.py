"""What an instance hands out, commits and forgets, with a consumer that follows a script."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from penstock.client.errors import CommitFailedError, KafkaTimeoutError, WakeupError
from penstock.client.values import ConsumerRecord, OffsetAndMetadata, TopicPartition
from penstock.rest.errors import ConsumerInstanceNotFound, IllegalConsumerState, KafkaFailure
from penstock.rest.payloads.formats import EmbeddedFormat
from penstock.rest.payloads.plain import decode_json
from penstock.rest.v2.instance import ConsumerInstance, InstanceSettings
from penstock.rest.v2.requests import SubscriptionRequest

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


class ScriptedConsumer:
    """Polls give what stands in the script: records, an error, or nothing."""

    def __init__(self, pass_time: Callable[[float], None]) -> None:
        self.pass_time = pass_time
        self.polls: deque[list[Any] | Exception] = deque()
        self.assigned: set[TopicPartition] = set()
        self.topics: set[str] = set()
        self.commits: list[dict[TopicPartition, int]] = []
        self.commit_error: Exception | None = None
        self.closed = False

    def subscribe(self, topics: Any, listener: Any) -> None:
        self.topics = set(topics) if isinstance(topics, tuple) else {topics.pattern}

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self.assigned = set(partitions)

    def subscription(self) -> set[str]:
        return self.topics

    def assignment(self) -> set[TopicPartition]:
        return self.assigned

    def poll(self, timeout_s: float) -> list[Any]:
        self.pass_time(timeout_s)
        step = self.polls.popleft() if self.polls else []
        if isinstance(step, Exception):
            raise step
        return step

    def seek(self, partition: TopicPartition, offset: int) -> None:
        assert partition in self.assigned

    def seek_to_end(self, partitions: Sequence[TopicPartition]) -> None:
        assert set(partitions) <= self.assigned

    def position(self, partition: TopicPartition) -> int:
        return 99

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if self.commit_error is not None:
            raise self.commit_error
        self.commits.append({at: one.offset for at, one in offsets.items()})

    def close(self) -> None:
        self.closed = True


def record(offset: int, value: bytes = b"1", partition: int = 0) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord(
        "t", partition, offset, 0, "CreateTime", None, value, serialized_value_size=len(value)
    )


class Rig:
    """An instance over a script, at a time that the test decides."""

    def __init__(self, *, auto_commit: bool = True, bytes_min: int = -1) -> None:
        self.now_s = 0.0  # Nothing but a poll takes time.
        self.made: list[ScriptedConsumer] = []
        settings = InstanceSettings(
            format=EmbeddedFormat.JSON,
            auto_commit=auto_commit,
            timeout_s=0.0001,
            bytes_min=bytes_min,
            bytes_max=1000,
        )
        self.instance = ConsumerInstance(
            self._make,  # type: ignore[arg-type]
            settings,
            decode_json,
            lambda: self.now_s,
        )
        self.instance.assign([FIRST, SECOND])

    def _make(self) -> ScriptedConsumer:
        self.made.append(ScriptedConsumer(self._pass_time))
        return self.made[-1]

    @property
    def consumer(self) -> ScriptedConsumer:
        return self.made[-1]

    def _pass_time(self, seconds: float) -> None:
        self.now_s += seconds

    def offsets(self, bytes_max: int | None = None) -> list[int]:
        return [one["offset"] for one in self.instance.read(None, bytes_max)]


def test_records_that_do_not_fit_are_kept_and_not_committed() -> None:
    rig = Rig()
    rig.consumer.polls.append([record(0), record(1), record(2)])
    assert rig.offsets(2) == [0, 1]
    rig.instance.commit(None)
    assert rig.consumer.commits == [{FIRST: 2}]
    assert rig.offsets(2) == [2]


def test_the_timer_commits_what_earlier_requests_were_given() -> None:
    rig = Rig()
    rig.consumer.polls += [[record(0)], [], [record(1)]]
    assert rig.offsets() == [0]
    assert rig.consumer.commits == []
    rig.now_s = 6.0
    assert rig.offsets() == [1]
    assert rig.consumer.commits == [{FIRST: 1}]
    rig.instance.close()
    assert rig.consumer.commits == [{FIRST: 1}, {FIRST: 2}]
    assert rig.consumer.closed


def test_without_the_timer_nothing_is_committed() -> None:
    rig = Rig(auto_commit=False)
    rig.consumer.polls.append([record(0)])
    rig.offsets()
    rig.now_s = 60.0
    rig.offsets()
    rig.instance.close()
    assert rig.consumer.commits == []


def test_partitions_that_go_take_their_records_along() -> None:
    rig = Rig()
    rig.consumer.polls.append([record(0), record(5, partition=1), record(1)])
    assert rig.offsets(2) == [0, 5]
    rig.instance.on_partitions_revoked([FIRST])
    assert rig.consumer.commits == [{FIRST: 1, SECOND: 6}]
    assert rig.offsets() == []
    rig.instance.on_partitions_lost([SECOND])
    rig.instance.commit(None)
    assert len(rig.consumer.commits) == 1


def test_a_commit_that_comes_too_late_keeps_nobody_from_reading() -> None:
    rig = Rig()
    rig.consumer.polls += [[record(0)], [], [record(1)]]
    rig.offsets()
    rig.now_s, rig.consumer.commit_error = 6.0, CommitFailedError("too late")
    assert rig.offsets() == [1]
    rig.consumer.commit_error = KafkaTimeoutError("nobody answers")
    rig.instance.close()
    assert rig.consumer.closed


def test_a_seek_forgets_what_was_kept_and_is_what_a_commit_means() -> None:
    rig = Rig()
    rig.consumer.polls.append([record(0), record(1)])
    assert rig.offsets(1) == [0]
    rig.instance.seek({FIRST: OffsetAndMetadata(7)})
    assert rig.offsets() == []
    rig.instance.seek_to_end([SECOND])
    rig.instance.commit(None)
    assert rig.consumer.commits[-1] == {FIRST: 7, SECOND: 99}


def test_what_cannot_be_decoded_is_told_once_it_is_first() -> None:
    rig = Rig()
    rig.consumer.polls.append([record(0), record(1, b"{"), record(2)])
    assert rig.offsets() == [0]
    for _ in range(2):
        with pytest.raises(KafkaFailure, match="t-0 at offset 1"):
            rig.offsets()
    rig.instance.seek({FIRST: OffsetAndMetadata(2)})
    rig.consumer.polls.append([record(2)])
    assert rig.offsets() == [2]


def test_an_error_after_records_waits_for_the_next_request() -> None:
    rig = Rig(bytes_min=100)
    rig.consumer.polls += [[record(0)], KafkaTimeoutError("away"), KafkaTimeoutError("away")]
    assert rig.offsets() == [0]
    with pytest.raises(KafkaFailure, match="away"):
        rig.offsets()


def test_a_wakeup_means_that_the_instance_ends() -> None:
    rig = Rig()
    rig.consumer.polls.append(WakeupError("woken"))
    with pytest.raises(ConsumerInstanceNotFound):
        rig.offsets()


def test_records_that_a_wakeup_finds_are_handed_out() -> None:
    rig = Rig(bytes_min=100)
    rig.consumer.polls += [[record(0)], WakeupError("woken")]
    assert rig.offsets() == [0]


def test_either_a_subscription_or_an_assignment() -> None:
    rig = Rig()
    wanted = SubscriptionRequest(topics=("t",))
    with pytest.raises(IllegalConsumerState):
        rig.instance.subscribe(wanted)
    rig.instance.unsubscribe()
    assert [one.closed for one in rig.made] == [True, False]
    with pytest.raises(KafkaFailure, match="not subscribed"):
        rig.offsets()
    rig.instance.subscribe(wanted)
    assert rig.instance.subscription() == ["t"]
    with pytest.raises(IllegalConsumerState):
        rig.instance.assign([FIRST])
    rig.instance.subscribe(SubscriptionRequest(topics=()))
    assert rig.instance.subscription() == []
    rig.instance.subscribe(SubscriptionRequest(topics=None, pattern="a|b"))
    assert rig.consumer.topics == {"^(a|b)$"}
    rig.consumer.assigned = {FIRST, TopicPartition("b", 0)}
    assert rig.instance.subscription() == ["b", "t"]
