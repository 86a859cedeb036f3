"""A query is a consumer group to the rest of the world: how far it has read is committed there.

So `kafka-consumer-groups --describe` and every exporter show its lag. The group is named by
`kafka.group.id`, or by `groupIdPrefix` and the query's id. Spark does not tell a source its query's
id on the driver, only in the tasks: so the first task of a run commits where it begins, with a word
that the driver chose, and the driver looks for the group in which that word stands.

The commits are a report. Where a query goes on after a restart is in its checkpoint alone.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.client.cluster import ClusterClient
from penstock.client.errors import ClientError
from penstock.client.operations.group_offsets import alter_group_offsets, group_offsets
from penstock.client.operations.groups import list_groups
from penstock.client.raw_fetch import NO_TOPIC_ID
from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.errors import ProtocolError
from penstock.protocol.primitives import uuid_text
from penstock.spark.offsets import Offsets
from penstock.spark.options import ReadOptions

_RUN, _TOPIC_ID = "run=", "topic-id="


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What the first task of a run is to tell the cluster for the driver."""

    run: str
    start: Offsets
    topic_ids: Mapping[str, bytes]
    resumed: bool  # The query goes on from a checkpoint, so its group may know the topics.


class Progress:
    """Commits for one run of a query, on the driver."""

    def __init__(self, options: ReadOptions, connect: Callable[[], ClusterClient]) -> None:
        self.options = options
        self.run = uuid.uuid4().hex
        self.group_id = options.group_id
        self._connect = connect
        self._committed: dict[TopicPartition, int] = {}
        self._announced = False

    @property
    def needs_announcement(self) -> bool:
        """Whether a task has to say which group it is."""
        return self.options.commit_progress and self.group_id is None

    def announced(self) -> None:
        """A batch was planned whose first task says it."""
        self._announced = True

    def commit(self, offsets: Offsets, topic_ids: Mapping[str, bytes]) -> None:
        """Everything before these offsets is processed."""
        if not self.options.commit_progress or offsets == self._committed:
            return
        if self.group_id is None:
            self.group_id = self._find_group() if self._announced else None
        if self.group_id is not None:
            commit_progress(self._connect(), self.group_id, offsets, topic_ids)
            self._committed = dict(offsets)

    def recreated(self, topic_ids: Mapping[str, bytes]) -> list[str]:
        """Topics that are not those of the group's last commits; only for a resumed query."""
        if self.group_id is None or not self.options.commit_progress:
            return []
        return recreated(self._connect(), self.group_id, topic_ids)

    def _find_group(self) -> str | None:
        """The group in which the first task of this run left the word of the run."""
        cluster = self._connect()
        for listed in list_groups(cluster):
            if listed.group_id.startswith(self.options.group_id_prefix):
                marks = (at.metadata for at in group_offsets(cluster, listed.group_id).values())
                if any(_RUN + self.run in mark.split() for mark in marks):
                    return listed.group_id
        return None  # No task has run yet: a batch without rows has none.


def announce(
    options: ReadOptions, cluster: ClusterClient, announcement: Announcement, query_id: str
) -> list[str]:
    """On a worker: commit where the run begins. The topics that were created anew, if any."""
    group_id = f"{options.group_id_prefix}-{query_id}"
    if announcement.resumed:
        anew = recreated(cluster, group_id, announcement.topic_ids)
        if anew:
            return anew
    commit_progress(
        cluster, group_id, announcement.start, announcement.topic_ids, run=announcement.run
    )
    return []


def commit_progress(
    cluster: ClusterClient,
    group_id: str,
    offsets: Offsets,
    topic_ids: Mapping[str, bytes],
    *,
    run: str | None = None,
) -> None:
    """One commit by one who is no member; the note keeps the topic's id and the run."""
    notes = {topic: _note(topic_id, run) for topic, topic_id in topic_ids.items()}
    commits = {
        partition: OffsetAndMetadata(offset, notes.get(partition.topic, _note(NO_TOPIC_ID, run)))
        for partition, offset in offsets.items()
    }
    try:
        alter_group_offsets(cluster, group_id, commits)
    except ProtocolError as error:
        raise ClientError(
            f"The progress of the query could not be committed to the group {group_id!r}: {error}. "
            "A group with members of its own cannot take it: choose another 'kafka.group.id', or "
            "set the option 'commitProgress' to 'false'"
        ) from error


def recreated(cluster: ClusterClient, group_id: str, topic_ids: Mapping[str, bytes]) -> list[str]:
    """Topics whose id differs from the one in the group's last commits."""
    anew = set()
    for partition, at in group_offsets(cluster, group_id).items():
        known = [word for word in at.metadata.split() if word.startswith(_TOPIC_ID)]
        now = topic_ids.get(partition.topic, NO_TOPIC_ID)
        if known and now != NO_TOPIC_ID and known[0] != _TOPIC_ID + uuid_text(now):
            anew.add(partition.topic)
    return sorted(anew)


def _note(topic_id: bytes, run: str | None) -> str:
    words = [] if run is None else [_RUN + run]
    if topic_id != NO_TOPIC_ID:
        words.append(_TOPIC_ID + uuid_text(topic_id))
    return " ".join(words)
