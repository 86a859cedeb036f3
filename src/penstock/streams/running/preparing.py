"""Before an application runs: do its topics, its plan and its state on disk fit each other?

Whatever does not fit is refused with what to do, because going on would give wrong results.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.client.operations.group_offsets import group_offsets
from penstock.client.operations.offsets import OffsetSpec, list_offsets
from penstock.client.operations.topics import describe_topics, list_topics
from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import CommandError
from penstock.streams.plan.nodes import StreamsTopology
from penstock.streams.plan.outline import differences, outline_of
from penstock.streams.plan.stages import Stage, cut, own_format_topics, task_count
from penstock.streams.running.folder import ApplicationFolder
from penstock.streams.running.settings import StreamsSettings
from penstock.streams.running.topics import (
    InternalTopic,
    counts_of,
    create_internal,
    internal_topics,
)
from penstock.streams.spark.stage_query import StageQuery
from penstock.streams.steps.foreign_key import SubscribeRows
from penstock.streams.tasks.batch import StageWork

_EARLIEST, _LATEST = -2, -1
_OFFSETS_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An application that may run."""

    queries: tuple[StageQuery, ...]
    created: tuple[str, ...]  # Topics that were missing.


def prepare(
    cluster: ClusterClient,
    settings: StreamsSettings,
    topology: StreamsTopology,
    folder: ApplicationFolder,
    *,
    once: bool,
) -> Prepared:
    """Check everything, create internal topics, and make a query of each stage."""
    refuse_unsafe(topology)
    stages = cut(topology)
    counts = counts_of(cluster, topology, stages)
    places = _places(settings, folder)
    _check_plan(settings, folder, outline_of(stages, counts, places))
    wanted = internal_topics(settings, topology, stages, counts)
    _check_state(cluster, settings, folder, wanted)
    created = create_internal(cluster, wanted, settings.replication_factor)
    folder.write_plan(outline_of(stages, counts, places))
    maker = _QueryMaker(
        cluster=cluster,
        settings=settings,
        topology=topology,
        folder=folder,
        counts=counts,
        places=places,
        once=once,
    )
    return Prepared(queries=tuple(map(maker.query, stages)), created=tuple(created))


def refuse_unsafe(topology: StreamsTopology) -> None:
    """Refuse what a batch can get wrong.

    A row whose foreign key becomes null, and that changes again before the answer comes, keeps its
    last result: the answer is about a version that is no longer there, and nobody is asked anew.
    """
    for node in topology.nodes:
        if isinstance(node.step, SubscribeRows) and not node.step.left:
            raise CommandError(
                f"{node.name}: join_foreign_key does not run on Spark yet, because a row that "
                "loses its foreign key and changes again in one batch would keep its last result. "
                "Write left_join_foreign_key and filter what has no partner."
            )


def _places(settings: StreamsSettings, folder: ApplicationFolder) -> int:
    """How many of Spark's tasks a stage has at most: as chosen, as it was, or as cores."""
    before = (folder.plan() or {}).get("places")
    return (
        settings.places or (before if folder.has_state() else None) or max(2, os.cpu_count() or 2)
    )


def _check_plan(
    settings: StreamsSettings, folder: ApplicationFolder, outline: dict[str, object]
) -> None:
    before = folder.plan()
    if before is None or not folder.has_state():
        return
    changed = differences(before, outline)
    if changed:
        raise CommandError(
            f"The topology of {settings.application_id} is not the one that its state in "
            f"{folder.path} belongs to: {'; '.join(changed)}. Run the old topology, give the new "
            "one another application.id, or let this one begin anew from its inputs: penstock "
            f"streams reset {settings.application_id}"
        )


def _check_state(
    cluster: ClusterClient,
    settings: StreamsSettings,
    folder: ApplicationFolder,
    wanted: Iterable[InternalTopic],
) -> None:
    """State on disk and internal topics are there together, or neither."""
    names = [one.name for one in wanted]
    there = {listing.name for listing in list_topics(cluster)}
    application, how = settings.application_id, "penstock streams reset"
    missing = [name for name in names if name not in there]
    if folder.has_state() and missing:
        raise CommandError(
            f"The state of {application} is in {folder.path}, but its topic {missing[0]} is gone. "
            f"If the application was reset, remove its state too: {how} {application}"
        )
    changelogs = [n for n in names if n.endswith("-changelog") and n in there]
    filled = _not_empty(cluster, changelogs) if not folder.has_state() else []
    if filled:
        raise CommandError(
            f"{application} has run before, for its topic {filled[0]} has records, but its state "
            f"is not in {folder.path}. Set state.dir to where it is, or let the application begin "
            f"anew from its inputs: {how} {application}"
        )


def _not_empty(cluster: ClusterClient, topics: list[str]) -> list[str]:
    described = describe_topics(cluster, topics)
    partitions = {
        TopicPartition(name, part.partition): int(OffsetSpec.LATEST)
        for name, topic in described.items()
        for part in topic.partitions
    }
    found = list_offsets(cluster, partitions, timeout_ms=_OFFSETS_TIMEOUT_MS)
    ends = [(at.topic, one) for at, one in found.items() if isinstance(one, OffsetAndTimestamp)]
    return sorted({topic for topic, one in ends if one.offset > 0})


@dataclass(frozen=True, slots=True, kw_only=True)
class _QueryMaker:
    cluster: ClusterClient
    settings: StreamsSettings
    topology: StreamsTopology
    folder: ApplicationFolder
    counts: Mapping[str, int]
    places: int
    once: bool

    def query(self, stage: Stage) -> StageQuery:
        """A stage as Spark runs it."""
        settings, tasks = self.settings, task_count(stage, self.counts)
        internal = self.topology.internal_topics
        prefix = f"{settings.application_id}-"
        named = {t: prefix + t if t in internal else t for t in self.counts}
        work = StageWork(
            application_id=settings.application_id,
            topology=stage.topology,
            own_format=own_format_topics(self.topology),
            counts={named[topic]: count for topic, count in self.counts.items()},
            dead_letters=settings.dead_letters,
        )
        topics = tuple(work.name(topic) for topic in stage.topics)
        return StageQuery(
            name=f"{prefix}stage-{stage.number}",
            work=work,
            topics=topics,
            global_topics=tuple(stage.global_topics),
            tasks=tasks,
            places=min(tasks, self.places),
            has_state=stage.has_state,
            group=settings.application_id,
            checkpoint=self.folder.checkpoint(stage.number).resolve(),
            settings=settings.client,
            starting=self._starting(stage, named),
            delivery="exactly-once" if settings.exactly_once else "at-least-once",
            records_max=settings.records_max,
            every=None if self.once else f"{settings.interval_ms} milliseconds",
        )

    def _starting(self, stage: Stage, named: Mapping[str, str]) -> str:
        """Where a stage without a checkpoint begins: where its group is, or at an end."""
        committed = group_offsets(self.cluster, self.settings.application_id)
        edge = _LATEST if self.settings.reset == "latest" else _EARLIEST
        found: dict[str, dict[str, int]] = {}
        for topic in (*stage.topics, *stage.global_topics):
            mine = topic in self.topology.internal_topics or topic in stage.global_topics
            begin = {} if mine else {at: one.offset for at, one in committed.items()}
            found[named[topic]] = {
                str(number): begin.get(TopicPartition(topic, number), _EARLIEST if mine else edge)
                for number in range(self.counts[topic])
            }
        return json.dumps(found)
