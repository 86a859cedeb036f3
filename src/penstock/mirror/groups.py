"""How far groups have read, told and set on the target as well, to the record.

In this order: what groups have committed, how far the mirror has copied, the runs up to there. So
every offset is translated by a map that knows at least as much as the position it is bounded by.
A group that is active on the target is left alone, and none is ever set back.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.client.operations.group_offsets import alter_group_offsets, group_offsets
from penstock.client.operations.groups import describe_consumer_groups, list_groups
from penstock.client.values import OffsetAndMetadata
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_cluster import persistently
from penstock.errors import GroupIdNotFound, ProtocolError, UnknownMemberId
from penstock.mirror.config import Flow
from penstock.mirror.copying.reading import bounds_of
from penstock.mirror.copying.run_records import RunRecords
from penstock.mirror.policies import checkpoints_topic, runs_topic
from penstock.mirror.record_writer import InternalTopicWriter
from penstock.mirror.runs import RunMap
from penstock.mirror.syncs import Checkpoint
from penstock.records.topic_partition import TopicPartition

_LOG = logging.getLogger("penstock.mirror")
_INACTIVE = ("Empty", "Dead")

Offsets = dict[TopicPartition, OffsetAndMetadata]


class Maps(NamedTuple):
    """The map of each partition that the mirror has begun, both ways round."""

    by_source: Mapping[TopicPartition, tuple[TopicPartition, RunMap]]
    by_target: Mapping[TopicPartition, tuple[TopicPartition, RunMap]]


class GroupSync:
    """The groups of a flow's source, on its target."""

    def __init__(
        self,
        flow: Flow,
        partitions: Iterable[tuple[TopicPartition, TopicPartition]],
        source: ClusterClient,
        target: ClusterClient,
    ) -> None:
        self._flow = flow
        self._partitions = list(partitions)
        self._source = source
        self._target = target
        separator = flow.policy.separator
        self._runs_topic = runs_topic(flow.source, separator)
        self._checkpoints_topic = checkpoints_topic(flow.source, separator)
        self._runs = RunRecords(target, TopicPartition(self._runs_topic, 0))
        self._writer = InternalTopicWriter(target)
        self._told: dict[tuple[str, TopicPartition], Checkpoint] = {}
        self._groups: list[str] = []

    def refresh_groups(self) -> None:
        """Which groups of the source are meant, from now on."""
        self._groups = self._chosen(self._source)

    def tell_checkpoints(self) -> None:
        """Write MirrorMaker 2's checkpoints of what has changed."""
        committed = {group: group_offsets(self._source, group) for group in self._groups}
        maps = self._maps()
        new = [
            checkpoint
            for group, offsets in committed.items()
            for checkpoint in checkpoints(group, offsets, maps)
            if self._told.get((group, _at(checkpoint))) != checkpoint
        ]
        self._writer.write(self._checkpoints_topic, [one.encoded() for one in new])
        self._told.update({(one.group, _at(one)): one for one in new})

    def sync(self) -> int:
        """Set groups on the target that nobody uses there; how many offsets moved."""
        committed = {group: group_offsets(self._source, group) for group in self._groups}
        maps = self._maps()
        return sum(
            self._advance(self._target, group, translated(offsets, maps))
            for group, offsets in committed.items()
        )

    def sync_back(self) -> int:
        """Set groups on the source that went on reading on the target; how many offsets moved."""
        committed = {
            group: group_offsets(self._target, group) for group in self._chosen(self._target)
        }
        maps = self._maps()
        return sum(
            self._advance(self._source, group, translated_back(offsets, maps))
            for group, offsets in committed.items()
        )

    def forget_outlived(self) -> None:
        """Take back runs of records that the source no longer has."""
        self._maps()
        starts = bounds_of(self._source, [here for here, _ in self._partitions])
        gone = [
            record
            for here, (start, _) in starts.items()
            for record in self._runs.outlived_keys(here, start)
        ]
        self._writer.write(self._runs_topic, gone)

    def close(self) -> None:
        """End the writing thread."""
        self._writer.close()

    def _chosen(self, cluster: ClusterClient) -> list[str]:
        listed = persistently(cluster, lambda: list_groups(cluster))
        return [
            one.group_id
            for one in listed
            if one.is_consumer_group and self._flow.groups.takes(one.group_id)
        ]

    def _maps(self) -> Maps:
        """As of one moment: positions first, then at least the runs that belong to them."""
        group = self._flow.positions_group
        positions = persistently(
            self._target, lambda: group_offsets(self._target, group, require_stable=True)
        )
        self._runs.catch_up()
        by_source = {}
        for here, there in self._partitions:
            if there in positions and positions[there].metadata:
                known = self._runs.map_of(here) or RunMap()
                known.end = int(positions[there].metadata)
                by_source[here] = (there, known)
        by_target = {there: (here, known) for here, (there, known) in by_source.items()}
        return Maps(by_source, by_target)

    def _advance(self, cluster: ClusterClient, group: str, wanted: Offsets) -> int:
        if not wanted or not _is_inactive(cluster, group):
            return 0
        there = group_offsets(cluster, group)
        ahead = {
            at: new
            for at, new in wanted.items()
            if at not in there or there[at].offset < new.offset
        }
        try:
            alter_group_offsets(cluster, group, ahead)
        except UnknownMemberId:
            return 0  # A member came in between; it knows better.
        return len(ahead)


def checkpoints(group: str, offsets: Offsets, maps: Maps) -> list[Checkpoint]:
    """What MirrorMaker 2's topic says of a group."""
    found = []
    for at, committed in offsets.items():
        there, known = maps.by_source.get(at, (at, None))
        offset = None if known is None else known.translate(committed.offset)
        if offset is not None:
            found.append(Checkpoint(group, *there, committed.offset, offset, committed.metadata))
    return found


def translated(offsets: Offsets, maps: Maps) -> Offsets:
    """A group's offsets as they are on the target."""
    found: Offsets = {}
    for at, committed in offsets.items():
        there, known = maps.by_source.get(at, (at, None))
        offset = None if known is None else known.translate(committed.offset)
        if offset is not None:
            found[there] = OffsetAndMetadata(offset, committed.metadata)
    return found


def translated_back(offsets: Offsets, maps: Maps) -> Offsets:
    """A group's offsets on the target as they are on the source."""
    found: Offsets = {}
    for at, committed in offsets.items():
        here, known = maps.by_target.get(at, (at, None))
        offset = None if known is None else known.translate_back(committed.offset)
        if offset is not None:
            found[here] = OffsetAndMetadata(offset, committed.metadata)
    return found


def _at(checkpoint: Checkpoint) -> TopicPartition:
    return TopicPartition(checkpoint.topic, checkpoint.partition)


def _is_inactive(cluster: ClusterClient, group: str) -> bool:
    found = describe_consumer_groups(cluster, [group])[group]
    if isinstance(found, GroupIdNotFound):
        return True
    if isinstance(found, ProtocolError):
        raise found
    return found.state in _INACTIVE and not found.members
