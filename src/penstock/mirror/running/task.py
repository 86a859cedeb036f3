"""What a task of a mirror is, as a value that can travel, and the loop that does it.

Nothing here knows Spark: the same function runs in a worker of Spark and in a thread of a test.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_cluster import cluster_for
from penstock.errors import (
    InvalidProducerEpoch,
    PenstockError,
    ProducerFenced,
)
from penstock.mirror.config import Beat, Flow
from penstock.mirror.copying.copier import CopyOrder, copy
from penstock.mirror.groups import GroupSync
from penstock.mirror.policies import HEARTBEATS
from penstock.mirror.record_writer import InternalTopicWriter
from penstock.mirror.syncs import Heartbeat
from penstock.records.topic_partition import TopicPartition

TAKEN_OVER = "another mirror has taken over"
_LOOK_S = 0.1
_FORGET_S = 3600

Stop = Callable[[], bool]


class TaskFenced(PenstockError):
    """A later attempt at the same task has begun, here or elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyTask:
    """Copies partitions."""

    order: CopyOrder
    source: Mapping[str, str]
    target: Mapping[str, str]

    def run(self, stop: Stop) -> None:
        """Copy until told to stop."""
        with cluster_for(self.source) as source, cluster_for(self.target) as target:
            try:
                copy(self.order, source, target, stop)
            except (ProducerFenced, InvalidProducerEpoch) as error:
                raise TaskFenced(f"{self.order.flow}: {TAKEN_OVER}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsTask:
    """Translates the offsets of groups."""

    flow: Flow
    partitions: tuple[tuple[TopicPartition, TopicPartition], ...]
    source: Mapping[str, str]
    target: Mapping[str, str]

    def run(self, stop: Stop) -> None:
        """Do each thing when it is due, until told to stop; and groups once more then."""
        with cluster_for(self.source) as source, cluster_for(self.target) as target:
            sync = GroupSync(self.flow, self.partitions, source, target)
            chores = self._chores(sync)
            try:
                sync.refresh_groups()
                while not stop():
                    for chore in chores:
                        chore.do_if_due(time.monotonic())
                    time.sleep(_LOOK_S)
                for chore in chores[1:]:
                    chore.act()
            finally:
                sync.close()

    def _chores(self, sync: GroupSync) -> "list[_Chore]":
        flow = self.flow
        chores = [_Chore(flow.refresh_groups_s, sync.refresh_groups)]
        if flow.emit_checkpoints:
            chores.append(_Chore(flow.checkpoint_s, sync.tell_checkpoints))
        if flow.sync_group_offsets:
            chores.append(_Chore(flow.group_sync_s, sync.sync))
        if flow.sync_group_offsets_back:
            chores.append(_Chore(flow.group_sync_s, sync.sync_back))
        chores.append(_Chore(_FORGET_S, sync.forget_outlived))
        return chores


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatsTask:
    """Writes heartbeats to one cluster."""

    beats: tuple[Beat, ...]
    target: Mapping[str, str]

    def run(self, stop: Stop) -> None:
        """Beat until told to stop."""
        with cluster_for(self.target) as target:
            writer = InternalTopicWriter(target)
            chores = [_Chore(beat.every_s, _beating(writer, beat)) for beat in self.beats]
            try:
                while not stop():
                    for chore in chores:
                        chore.do_if_due(time.monotonic())
                    time.sleep(_LOOK_S)
            finally:
                writer.close()


MirrorTask = CopyTask | GroupsTask | BeatsTask


@dataclass(slots=True)
class _Chore:
    every_s: float | None  # None: never again.
    act: Callable[[], object]
    due_s: float = 0.0

    def do_if_due(self, now_s: float) -> None:
        if self.every_s is not None and now_s >= self.due_s:
            self.act()
            self.due_s = now_s + self.every_s


def _beating(writer: InternalTopicWriter, beat: Beat) -> Callable[[], None]:
    def act() -> None:
        now_ms = time.time_ns() // 1_000_000
        writer.write(HEARTBEATS, [Heartbeat(beat.source, beat.target, now_ms).encoded()])

    return act


def opened(stack: ExitStack, settings: Mapping[str, str]) -> ClusterClient:
    """A cluster that is closed with the stack."""
    return stack.enter_context(cluster_for(settings))
