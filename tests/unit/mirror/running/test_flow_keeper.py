"""Tasks: what they copy, when they start again, what a change leaves alone."""

from collections import Counter
from dataclasses import dataclass, field

import pytest

from penstock.mirror.config import Beat, MirrorConfig
from penstock.mirror.running.flow_keeper import (
    TaskKeeper,
    restart_pause_s,
    task_of,
    tasks_of,
)
from penstock.mirror.running.hosts import RunningCopy
from penstock.mirror.running.task import BeatsTask, CopyTask, GroupsTask, MirrorTask
from penstock.records.topic_partition import TopicPartition

CONFIG = MirrorConfig.of(
    {
        "clusters": "A, B",
        "A.bootstrap.servers": "a:1",
        "B.bootstrap.servers": "b:1",
        "A->B.enabled": "true",
        "tasks.max": "3",
        "A.consumer.isolation.level": "read_uncommitted",
        "A.consumer.fetch.max.bytes": "1000",
        "B.producer.transaction.timeout.ms": "7000",
    }
)
FLOW = CONFIG.flows[0]
PAIRS = {TopicPartition("t", at): TopicPartition("A.t", at) for at in range(30)}


def test_every_partition_is_copied_by_one_task() -> None:
    tasks = tasks_of(CONFIG, FLOW, PAIRS)
    copies = [one for one in tasks.values() if isinstance(one, CopyTask)]
    shared = Counter(pair for one in copies for pair in one.order.partitions)
    assert shared == Counter(PAIRS.items()) and len(copies) == 3
    assert {one.order.transactional_id for one in copies} == {f"mirror-A-B-{n}" for n in range(3)}
    (groups,) = [one for one in tasks.values() if isinstance(one, GroupsTask)]
    assert dict(groups.partitions) == PAIRS


def test_a_task_copies_as_its_clients_are_set() -> None:
    copy = next(one for one in tasks_of(CONFIG, FLOW, PAIRS).values() if isinstance(one, CopyTask))
    assert (copy.order.reading.read_committed, copy.order.reading.max_bytes) == (False, 1000)
    assert copy.order.transaction_timeout_ms == 7000
    assert copy.order.syncs_topic == "mm2-offset-syncs.B.internal"


def test_a_new_topic_concerns_only_the_tasks_that_get_its_partitions() -> None:
    new = TopicPartition("new", 0)
    before = tasks_of(CONFIG, FLOW, PAIRS)
    after = tasks_of(CONFIG, FLOW, {**PAIRS, new: TopicPartition("A.new", 0)})
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {f"A->B copy {task_of(new, 3)}", "A->B groups"}


@pytest.mark.parametrize(("failures", "pause_s"), [(1, 0.0), (2, 1.0), (3, 2.0), (20, 60.0)])
def test_the_first_restart_is_at_once_and_later_ones_are_not(failures: int, pause_s: float) -> None:
    assert restart_pause_s(failures, is_fenced=False) == pause_s


def test_two_mirrors_do_not_fence_each_other_without_a_pause() -> None:
    assert restart_pause_s(1, is_fenced=True) >= 5.0


@dataclass
class Played:
    is_running: bool = True
    failure: str | None = None
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled, self.is_running = True, False


@dataclass
class PlayedHost:
    started: list[tuple[str, Played]] = field(default_factory=list)

    def start(self, name: str, task: MirrorTask) -> RunningCopy:
        self.started.append((name, Played()))
        return self.started[-1][1]


def beats(every_s: int) -> BeatsTask:
    beat = Beat(source="A", target="B", every_s=every_s, replication_factor=None)
    return BeatsTask(beats=(beat,), target={})


def test_what_fails_starts_again_and_says_why() -> None:
    host, told = PlayedHost(), list[str]()
    keeper = TaskKeeper(host, told.append)
    keeper.keep({"one": beats(1)})
    keeper.look(100.0)
    keeper.look(100.1)
    assert len(host.started) == 1
    first = host.started[0][1]
    first.is_running, first.failure = False, "the target refuses."
    keeper.look(100.2)
    assert len(host.started) == 2 and "one failed: the target refuses." in told[0]
    host.started[1][1].is_running = False
    keeper.look(100.3)
    assert len(host.started) == 2  # The second failure in a row has to wait.
    keeper.look(101.4)
    assert len(host.started) == 3


def test_what_is_no_longer_wanted_or_has_changed_is_cancelled() -> None:
    host = PlayedHost()
    keeper = TaskKeeper(host, lambda _: None)
    keeper.keep({"same": beats(1), "changed": beats(1), "gone": beats(1)})
    keeper.look(0.0)
    keeper.keep({"same": beats(1), "changed": beats(2)})
    keeper.look(1.0)
    cancelled = {name for name, one in host.started if one.cancelled}
    assert cancelled == {"changed", "gone"}
    assert [name for name, _ in host.started] == ["same", "changed", "gone", "changed"]
    keeper.end()
    assert not any(one.is_running for _, one in host.started)
