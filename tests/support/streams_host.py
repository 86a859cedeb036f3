"""A host for tests, without Spark: stages over topics in lists, memory in pages in a dict.

It cuts what it is given into batches as it is told, and keeps nothing but pages and topics between
them, as if it were killed after each. Spark's host has the same parts around the same tasks.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from penstock.streams import StreamsTopology
from penstock.streams.plan.stages import (
    changelog_topic,
    cut,
    own_format_topics,
    partition_counts,
    task_count,
)
from penstock.streams.tasks.batch import ANY_PARTITION, RowIn, RowOut, StageWork, TaskBatch
from penstock.streams.tasks.changelogs import ChangelogRow, has_changelog
from penstock.streams.tasks.paged_memory import ABOUT
from penstock.streams.tasks.partitioning import murmur2
from penstock.streams.tasks.progress import TASK_STATE, TaskMarks, progress_from, progress_topic
from penstock.streams.tasks.restoring import restore_store

APPLICATION = "app"


@dataclass
class DictShelf:
    """The pages of one state of one task."""

    pages: dict[int, bytes] = field(default_factory=dict)

    def load(self, page: int) -> bytes | None:
        return self.pages.get(page)

    def save(self, page: int, data: bytes | None) -> None:
        if data is None:
            self.pages.pop(page, None)
        else:
            self.pages[page] = data


class ListHost:
    """Topics are lists of rows, by partition."""

    def __init__(
        self, topology: StreamsTopology, partitions: int = 1, *, merges: bool = False
    ) -> None:
        self.topology = topology
        self.stages = cut(topology)
        read = {topic for stage in self.stages for topic in (*stage.topics, *stage.global_topics)}
        users = dict.fromkeys(read - topology.internal_topics, partitions)
        counts = partition_counts(topology, self.stages, users)
        self.works = {
            stage.number: StageWork(
                application_id=APPLICATION,
                topology=stage.topology,
                own_format=own_format_topics(topology),
                progress=f"{APPLICATION}-{progress_topic(stage.number)}",
                has_state=stage.has_state,
                merges=merges,
            )
            for stage in self.stages
        }
        name = next(iter(self.works.values())).name
        self.counts = {name(topic): count for topic, count in counts.items()}
        self.tasks = {stage.number: task_count(stage, counts) for stage in self.stages}
        self.topics: dict[str, list[list[RowIn]]] = defaultdict(
            lambda: [[] for _ in range(partitions)]
        )
        self.positions: dict[tuple[int, int, str, int], int] = defaultdict(int)
        self.shelves: dict[tuple[int, int, str], DictShelf] = defaultdict(DictShelf)

    def put(self, topic: str, key: bytes | None, value: bytes | None, at_ms: int) -> None:
        self._append(RowOut(topic, ANY_PARTITION, key, value, (), at_ms))

    def run(self) -> None:
        """Batches of all stages, until none has anything to read."""
        while sum(self._run_stage(number) for number in self.works):
            pass

    def lose_all_but_topics(self, folder: Path) -> None:
        """Forget pages and positions, and make them anew from what is in topics."""
        self.shelves.clear()
        self.positions.clear()
        for number, work in self.works.items():
            assert work.progress is not None
            told = progress_from((r.partition, r.key, r.value) for r in self.written(work.progress))
            for (topic, partition), offset in told.positions.items():
                self.positions[number, partition, topic, partition] = offset
            for task in range(self.tasks[number]):
                place = folder / f"{number}-{task}-{len(self.written(work.progress))}"
                place.mkdir(parents=True)
                self._restore(number, task, told.marks.get(task), place)

    def _restore(self, number: int, task: int, marks: bytes | None, folder: Path) -> None:
        topology = self.works[number].topology
        clocks = TaskMarks() if marks is None else TaskMarks.read(marks)
        self.shelves[number, task, TASK_STATE].save(ABOUT, marks)
        for store in topology.stores:
            if has_changelog(topology, store):
                held = self.topics[f"{APPLICATION}-{changelog_topic(store)}"][task]
                rows = [ChangelogRow(row.key or b"", row.value, row.timestamp_ms) for row in held]
                shelf = self.shelves[number, task, store.name]
                clock = clocks.clocks.get(store.name)
                restore_store(topology, store, rows, clock, shelf, folder)

    def _run_stage(self, number: int) -> bool:
        work, worked = self.works[number], False
        written: list[RowOut] = []
        for task in range(self.tasks[number]):
            rows = self._next_rows(number, task)
            if rows:
                worked = True
                batch = TaskBatch(work, task, lambda state, t=task: self.shelves[number, t, state])  # type: ignore[misc]
                written += batch.run(rows)
        for row in written:
            self._append(row)
        return worked

    def _next_rows(self, number: int, task: int) -> list[RowIn]:
        stage = next(one for one in self.stages if one.number == number)
        name = self.works[number].name
        wanted = [(name(topic), task) for topic in stage.topics]
        for topic in stage.global_topics:
            wanted += [(topic, partition) for partition in range(len(self.topics[topic]))]
        rows: list[RowIn] = []
        for topic, partition in wanted:
            if partition < len(self.topics[topic]):
                held, at = self.topics[topic][partition], (number, task, topic, partition)
                rows += held[self.positions[at] :]
                self.positions[at] = len(held)
        return rows

    def _append(self, row: RowOut) -> None:
        partitions = self.topics[row.topic]
        partition = row.partition
        if partition == ANY_PARTITION:
            partition = (murmur2(row.key or b"") & 0x7FFFFFFF) % len(partitions)
        held = partitions[partition]
        held.append(
            RowIn(
                row.topic, partition, len(held), row.timestamp_ms, row.key, row.value, row.headers
            )
        )

    def written(self, topic: str) -> list[RowIn]:
        """All rows of a topic, partition by partition."""
        return [row for partition in self.topics[topic] for row in partition]

    def table(self, topic: str) -> dict[bytes, bytes]:
        """The newest value of each key of a topic."""
        newest = {row.key or b"": row.value for row in self.written(topic)}
        return {key: value for key, value in newest.items() if value is not None}
