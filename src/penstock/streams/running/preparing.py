"""Before an application runs: do its topics, its plan and its state on disk fit each other?

Whatever does not fit is refused with what to do, because going on would give wrong results.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.client.operations.group_offsets import group_offsets
from penstock.client.operations.topics import list_topics
from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import CommandError
from penstock.streams.plan.nodes import StreamsTopology
from penstock.streams.plan.outline import differences, outline_of
from penstock.streams.plan.stages import Stage, cut, own_format_topics, task_count
from penstock.streams.running.folder import ApplicationFolder
from penstock.streams.running.restoring import RestorePlan, ends_of, restore_plan
from penstock.streams.running.settings import StreamsSettings
from penstock.streams.running.topics import (
    InternalTopic,
    counts_of,
    create_internal,
    internal_topics,
)
from penstock.streams.spark.restoring import LostTasks
from penstock.streams.spark.stage_query import StageQuery
from penstock.streams.tasks.batch import StageWork
from penstock.streams.tasks.progress import TaskMarks, progress_topic

_EARLIEST, _LATEST = -2, -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An application that may run."""

    queries: tuple[StageQuery, ...]
    created: tuple[str, ...]  # Topics that were missing.
    is_restored: bool  # Its state was lost, and begins with what topics tell.


def prepare(
    cluster: ClusterClient,
    settings: StreamsSettings,
    topology: StreamsTopology,
    folder: ApplicationFolder,
    *,
    once: bool,
) -> Prepared:
    """Check everything, create internal topics, and make a query of each stage."""
    stages = cut(topology)
    counts = counts_of(cluster, topology, stages)
    places = _places(settings, folder)
    _check_plan(settings, folder, outline_of(stages, counts, places))
    wanted = internal_topics(settings, topology, stages, counts)
    _check_topics(cluster, settings, folder, wanted)
    created = create_internal(cluster, wanted, settings.replication_factor)
    restore = _restore(cluster, settings, folder, stages, wanted)
    folder.write_plan(outline_of(stages, counts, places))
    maker = _QueryMaker(
        cluster=cluster,
        settings=settings,
        topology=topology,
        folder=folder,
        counts=counts,
        places=places,
        once=once,
        restore=restore,
    )
    is_restored = bool(restore.ends) and not folder.has_state()
    queries = tuple(map(maker.query, stages))
    return Prepared(queries=queries, created=tuple(created), is_restored=is_restored)


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


def _check_topics(
    cluster: ClusterClient,
    settings: StreamsSettings,
    folder: ApplicationFolder,
    wanted: Iterable[InternalTopic],
) -> None:
    """Whoever ran before needs all its topics, with state on disk and without."""
    names = [one.name for one in wanted]
    there = {listing.name for listing in list_topics(cluster)}.intersection(names)
    missing = [name for name in names if name not in there]
    if not missing:
        return
    application = settings.application_id
    if folder.has_state():
        raise CommandError(
            f"The state of {application} is in {folder.path}, but its topic {missing[0]} is gone. "
            "If the application was reset, remove its state too: penstock streams reset "
            f"{application}"
        )
    filled = [at for at, end in ends_of(cluster, there, read_committed=False).items() if end]
    if filled:
        raise CommandError(
            f"{application} has run before, for its topic {filled[0].topic} has records, but its "
            f"topic {missing[0]} is not there, and its state is not in {folder.path}. Set "
            "state.dir to where it is, or let the application begin anew from its inputs: "
            f"penstock streams reset {application}"
        )


def _restore(
    cluster: ClusterClient,
    settings: StreamsSettings,
    folder: ApplicationFolder,
    stages: tuple[Stage, ...],
    wanted: Iterable[InternalTopic],
) -> RestorePlan:
    """What topics tell of an application without state; empty for one that never ran."""
    noted = folder.restore_plan()
    if folder.has_state():
        return RestorePlan() if noted is None else RestorePlan.of(noted)
    names = [one.name for one in wanted]
    plan = RestorePlan()
    if any(ends_of(cluster, names, read_committed=False).values()):
        plan = restore_plan(cluster, settings, [stage.number for stage in stages], names)
        _check_progress(settings, folder, plan, [stage.number for stage in stages])
    folder.write_restore_plan(plan.document())
    return plan


def _check_progress(
    settings: StreamsSettings, folder: ApplicationFolder, plan: RestorePlan, stages: list[int]
) -> None:
    """Changelogs alone are not enough: somebody must have told what went into them."""
    application = settings.application_id
    told = {f"{application}-{progress_topic(stage)}" for stage in stages}
    filled = sorted(name for name, ends in plan.ends.items() if any(ends.values()))
    lacking = filled[:1] if not told.intersection(filled) else []
    lacking += [
        f"{application}-{progress_topic(stage)}"
        for stage, marks in plan.marks.items()
        if not all(TaskMarks.read(each).is_placed for each in marks.values())
    ]
    if lacking:
        raise CommandError(
            f"The topic {lacking[0]} has records, but nothing tells how far {application} had "
            f"come, and its state is not in {folder.path}. Set state.dir to where it is, or let "
            f"the application begin anew from its inputs: penstock streams reset {application}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _QueryMaker:
    cluster: ClusterClient
    settings: StreamsSettings
    topology: StreamsTopology
    folder: ApplicationFolder
    counts: Mapping[str, int]
    places: int
    once: bool
    restore: RestorePlan

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
            failures=settings.failures,
            progress=prefix + progress_topic(stage.number),
            has_state=stage.has_state,
            merges=settings.merges,
        )
        lost = LostTasks(
            client=settings.client,
            ends=self.restore.ends,
            marks=self.restore.marks.get(stage.number, {}),
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
            lost=lost,
            group=settings.application_id,
            checkpoint=self.folder.checkpoint(stage.number).resolve(),
            settings=settings.client,
            starting=self._starting(stage, named),
            delivery="exactly-once" if settings.exactly_once else "at-least-once",
            records_max=settings.records_max,
            every=None if self.once else f"{settings.interval_ms} milliseconds",
        )

    def _starting(self, stage: Stage, named: Mapping[str, str]) -> str:
        """Where a stage without a checkpoint begins: as told, where its group is, or at an end."""
        committed = group_offsets(self.cluster, self.settings.application_id)
        edge = _LATEST if self.settings.reset == "latest" else _EARLIEST
        found: dict[str, dict[str, int]] = {}
        for topic in (*stage.topics, *stage.global_topics):
            mine = topic in self.topology.internal_topics or topic in stage.global_topics
            begin = {} if mine else {at: one.offset for at, one in committed.items()}
            told = {} if topic in stage.global_topics else self.restore.positions.get(named[topic])
            found[named[topic]] = {
                str(number): (told or {}).get(
                    number,
                    begin.get(TopicPartition(topic, number), _EARLIEST if mine else edge),
                )
                for number in range(self.counts[topic])
            }
        return json.dumps(found)
