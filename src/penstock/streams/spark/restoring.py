"""A task's pages from its changelogs, on the worker that runs it first after state was lost."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.client.values import TopicPartition
from penstock.streams.following.reading import committed_rows
from penstock.streams.plan.nodes import StoreSpec
from penstock.streams.plan.stages import changelog_topic
from penstock.streams.tasks.batch import StageWork
from penstock.streams.tasks.changelogs import has_changelog
from penstock.streams.tasks.paged_memory import ABOUT
from penstock.streams.tasks.pages import PageShelf
from penstock.streams.tasks.progress import TASK_STATE, TaskMarks
from penstock.streams.tasks.restoring import restore_store


@dataclass(frozen=True, slots=True, kw_only=True)
class LostTasks:
    """What the tasks of a stage have to know that may have lost their pages."""

    client: Mapping[str, str]
    ends: Mapping[str, Mapping[int, int]] = field(default_factory=dict)  # Of changelogs, by topic.
    marks: Mapping[int, bytes] = field(default_factory=dict)  # Of tasks, by number.

    def restore(self, work: StageWork, task: int, shelf_of: Callable[[str], PageShelf]) -> None:
        """Make a task's pages anew, unless it has them or never had any.

        The pages are part of the batch: one that is cut off finds the task without them again, and
        reads up to the same ends, so what the batch itself had told is not among it.
        """
        marks = self.marks.get(task)
        if marks is None or shelf_of(TASK_STATE).load(ABOUT) is not None:
            return
        clocks = TaskMarks.read(marks).clocks
        with tempfile.TemporaryDirectory(prefix="penstock-restore-") as folder:
            for store in work.topology.stores:
                if has_changelog(work.topology, store):
                    self._restore(work, task, store, clocks, shelf_of(store.name), Path(folder))
        shelf_of(TASK_STATE).save(ABOUT, marks)

    def _restore(
        self,
        work: StageWork,
        task: int,
        store: StoreSpec,
        clocks: Mapping[str, object],
        shelf: PageShelf,
        folder: Path,
    ) -> None:
        topic = f"{work.application_id}-{changelog_topic(store)}"
        end = self.ends.get(topic, {}).get(task, 0)
        rows = committed_rows(self.client, TopicPartition(topic, task), 0, end) if end else ()
        restore_store(work.topology, store, rows, clocks.get(store.name), shelf, folder)
