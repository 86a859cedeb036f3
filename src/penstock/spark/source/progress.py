"""A query is a consumer group to the rest of the world: how far it has read is committed there.

So `kafka-consumer-groups --describe` and every exporter show its lag. The group is named by
`kafka.group.id`, or by `groupIdPrefix` and the query's id. Spark does not tell a source its query's
id on the driver, only in the tasks: so the first task of a run commits where it begins, with a word
that the driver chose, and the driver looks for the group in which that word stands.

The commits are a report. Where a query goes on after a restart is in its checkpoint alone. Spark
does not tell a source that its only batch is done (`trigger(once=True)`): the next run reports it.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from penstock.client.errors import ClientError
from penstock.client.operations.group_offsets import alter_group_offsets, group_offsets
from penstock.client.operations.groups import list_groups
from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_cluster import persistently
from penstock.errors import ProtocolError, UnknownTopicOrPartition
from penstock.spark.options import ReadOptions
from penstock.spark.source.offsets import Offsets

_RUN = "run="


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What the first task of a run is to tell the cluster for the driver."""

    run: str
    start: Offsets


class ProgressCommits:
    """Commits for one run of a query, on the driver."""

    def __init__(self, options: ReadOptions, connect: Callable[[], ClusterClient]) -> None:
        self.options = options
        self.run = uuid.uuid4().hex
        self.group_id = options.group_id
        self._connect = connect
        self._committed: dict[TopicPartition, int] = {}
        self._is_announced = False

    def announcement(self, start: Offsets) -> Announcement | None:
        """What the first task of this batch announces; None: the group is known, or not used."""
        if not self.options.commit_progress or self.group_id is not None:
            return None
        self._is_announced = True
        return Announcement(run=self.run, start=start)

    def commit(self, offsets: Offsets) -> None:
        """Everything before these offsets is processed."""
        if not self.options.commit_progress or offsets == self._committed:
            return
        if self.group_id is None and self._is_announced:
            self.group_id = self._find_group()
        if self.group_id is None:
            return
        try:
            commit_progress(self._connect(), self.group_id, offsets)
        except UnknownTopicOrPartition:
            return  # A topic is gone; the look for its end reports that.
        self._committed = dict(offsets)

    def _find_group(self) -> str | None:
        """The group in which the first task of this run committed the run's announcement."""
        cluster = self._connect()
        for listed in persistently(cluster, lambda: list_groups(cluster)):
            if listed.group_id.startswith(self.options.group_id_prefix):
                notes = (at.metadata for at in group_offsets(cluster, listed.group_id).values())
                if _RUN + self.run in notes:
                    return listed.group_id
        return None  # The task failed before it could announce; its next attempt will.


def announce(
    options: ReadOptions, cluster: ClusterClient, announcement: Announcement, query_id: str
) -> None:
    """On a worker: commit where the run begins, with the text that the driver looks for."""
    group_id = f"{options.group_id_prefix}-{query_id}"
    commit_progress(cluster, group_id, announcement.start, note=_RUN + announcement.run)


def commit_progress(
    cluster: ClusterClient, group_id: str, offsets: Offsets, *, note: str = ""
) -> None:
    """Commit to a group without being a member."""
    commits = {p: OffsetAndMetadata(offset, note) for p, offset in offsets.items()}
    try:
        persistently(cluster, lambda: alter_group_offsets(cluster, group_id, commits))
    except UnknownTopicOrPartition:
        raise
    except ProtocolError as error:
        raise ClientError(
            f"The progress of the query could not be committed to the group {group_id!r}: {error}. "
            "A group with members of its own cannot take it: choose another 'kafka.group.id', or "
            "set the option 'commitProgress' to 'false'"
        ) from error
