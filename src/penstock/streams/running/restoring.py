"""Where an application goes on whose state was lost with its disk: what its topics tell.

Every batch told its progress in the transaction of its results and changelogs. Once all that was
left open is settled, each task's progress, changelogs and results belong together, and a new
checkpoint may begin there: nothing is lost, nothing is written twice.
"""

import base64
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.client.operations.group_offsets import group_offsets
from penstock.client.operations.groups import list_groups
from penstock.client.operations.offsets import OffsetSpec, list_offsets
from penstock.client.operations.topics import describe_topics
from penstock.client.operations.transactions import list_transactions
from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import CommandError, UnsupportedVersion
from penstock.spark.sink.transactional import BatchLedger, QueryNames
from penstock.streams.following.reading import committed_rows
from penstock.streams.running.settings import StreamsSettings
from penstock.streams.tasks.progress import StageProgress, progress_from, progress_topic

_TIMEOUT_MS = 30_000
_TRIES = 600
_EVERY_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """What stages begin with that have no checkpoint yet."""

    positions: Mapping[str, Mapping[int, int]] = field(default_factory=dict)  # By topic.
    ends: Mapping[str, Mapping[int, int]] = field(default_factory=dict)  # Of changelogs.
    marks: Mapping[int, Mapping[int, bytes]] = field(default_factory=dict)  # By stage and task.

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        marks = {
            str(stage): {str(task): base64.b64encode(data).decode() for task, data in of.items()}
            for stage, of in self.marks.items()
        }
        return {"positions": _worded(self.positions), "ends": _worded(self.ends), "marks": marks}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "RestorePlan":
        """From JSON."""
        marks = {
            int(stage): {int(task): base64.b64decode(text) for task, text in of.items()}
            for stage, of in document["marks"].items()
        }
        positions, ends = _numbered(document["positions"]), _numbered(document["ends"])
        return cls(positions=positions, ends=ends, marks=marks)


def _worded(found: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int]]:
    return {topic: {str(at): n for at, n in of.items()} for topic, of in found.items()}


def _numbered(found: Mapping[str, Mapping[str, int]]) -> dict[str, dict[int, int]]:
    return {topic: {int(at): n for at, n in of.items()} for topic, of in found.items()}


def settle(cluster: ClusterClient, application_id: str) -> None:
    """Finish what was decided and abort the rest, of every query this application ever was."""
    groups = [one.group_id for one in list_groups(cluster)]
    try:
        open_ = [one.transactional_id for one in list_transactions(cluster)]
    except UnsupportedVersion:
        open_ = []  # Before Kafka 3.0 what was never decided ends by its timeout.
    for names in query_names(application_id, [*groups, *open_]):
        ledger = BatchLedger(cluster, names)
        decision = ledger.latest()
        if decision is not None:
            ledger.finish(decision)
        ledger.abort_strays()


def query_names(application_id: str, named: Iterable[str]) -> list[QueryNames]:
    """The queries of an application's stages, by their groups and their transactional ids."""
    query_id = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    pattern = re.compile(
        rf"({re.escape(application_id)}-stage-\d+)-({query_id})-(?:sink|decision|\d+)"
    )
    found = [one for one in map(pattern.fullmatch, named) if one]
    unique = dict.fromkeys((one[1], one[2]) for one in found)
    return [QueryNames(prefix=prefix, query_id=each) for prefix, each in unique]


def ends_of(
    cluster: ClusterClient, topics: Iterable[str], *, read_committed: bool
) -> dict[TopicPartition, int]:
    """Where partitions end: all of them, or what readers of committed records get to see."""
    described = describe_topics(cluster, sorted(topics))
    partitions = {
        TopicPartition(name, part.partition): int(OffsetSpec.LATEST)
        for name, topic in described.items()
        for part in topic.partitions
    }
    found = list_offsets(cluster, partitions, timeout_ms=_TIMEOUT_MS, read_committed=read_committed)
    return {at: one.offset for at, one in found.items() if isinstance(one, OffsetAndTimestamp)}


def settled_ends(cluster: ClusterClient, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """The ends once no transaction is open any more; CommandError if one stays open."""
    names = sorted(topics)
    for _ in range(_TRIES):
        ends = ends_of(cluster, names, read_committed=True)
        all_ends = ends_of(cluster, names, read_committed=False)
        behind = [at for at, end in all_ends.items() if ends.get(at) != end]
        if not behind:
            return ends
        time.sleep(_EVERY_S)
    raise CommandError(
        f"A transaction on {behind[0]} stays open, so the state cannot be restored. Stop whoever "
        "else runs this application, or wait until the transaction times out."
    )


def restore_plan(
    cluster: ClusterClient, settings: StreamsSettings, stages: Iterable[int], topics: Iterable[str]
) -> RestorePlan:
    """What the application's own topics tell of where it was."""
    names = list(topics)
    settle(cluster, settings.application_id)
    ends = settled_ends(cluster, names)
    told = {stage: _progress(settings, stage, ends) for stage in stages}
    by_topic: dict[str, dict[int, int]] = {}
    for at, end in ends.items():
        by_topic.setdefault(at.topic, {})[at.partition] = end
    return RestorePlan(
        positions=_positions(cluster, settings, told.values()),
        ends=by_topic,
        marks={stage: progress.marks for stage, progress in told.items()},
    )


def _progress(
    settings: StreamsSettings, stage: int, ends: Mapping[TopicPartition, int]
) -> StageProgress:
    topic = f"{settings.application_id}-{progress_topic(stage)}"
    mine = {at: end for at, end in ends.items() if at.topic == topic}
    return progress_from(
        (at.partition, row.key, row.value)
        for at, end in mine.items()
        for row in (committed_rows(settings.client, at, 0, end) if end else ())
    )


def _positions(
    cluster: ClusterClient, settings: StreamsSettings, told: Iterable[StageProgress]
) -> dict[str, dict[int, int]]:
    """Of what was told, and of the group: what is committed there was read and decided.

    Without transactions only the group counts, for progress may be ahead of results.
    """
    found: dict[str, dict[int, int]] = {}
    for at, committed in group_offsets(cluster, settings.application_id).items():
        found.setdefault(at.topic, {})[at.partition] = committed.offset
    positions = [one for each in told for one in each.positions.items()]
    for (topic, partition), offset in positions if settings.exactly_once else ():
        of_topic = found.setdefault(topic, {})
        of_topic[partition] = max(offset, of_topic.get(partition, 0))
    return found
