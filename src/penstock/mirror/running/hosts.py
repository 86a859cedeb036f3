"""Where tasks run: in threads of this process, or, as resident tasks, on Spark.

On Spark each task is a job of its own (`penstock.queries.resident`). Whoever cancels a job cuts its
task off in the middle; the transaction that it may have open is ended by `flow_keeper`.
"""

import pickle
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from penstock.mirror.running.task import MirrorTask
from penstock.queries.failure import sentence_of
from penstock.queries.resident import ResidentJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_END_S = 60.0


class RunningCopy(Protocol):
    """A task that was started."""

    @property
    def is_running(self) -> bool: ...
    @property
    def failure(self) -> str | None: ...
    def cancel(self) -> None: ...


class TaskHost(Protocol):
    """Where tasks run."""

    def start(self, name: str, task: MirrorTask) -> RunningCopy: ...


class ThreadTask:
    """A task in a thread, which ends when it has committed what it fetched."""

    def __init__(self, name: str, task: MirrorTask) -> None:
        self._stop = threading.Event()
        self._failure: str | None = None
        self._task = task
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    @property
    def failure(self) -> str | None:
        """Why it ended; None: it runs, or ended as it was told."""
        return self._failure

    def cancel(self) -> None:
        """Let it end in good order."""
        self._stop.set()
        self._thread.join(_END_S)

    def _run(self) -> None:
        try:
            self._task.run(self._stop.is_set)
        except Exception as error:  # noqa: BLE001  (whatever ends a task is told by its keeper)
            self._failure = f"{type(error).__name__}: {error}"


class ThreadHost:
    """Tasks as threads of this process."""

    def start(self, name: str, task: MirrorTask) -> RunningCopy:
        """Run a task from now on."""
        return ThreadTask(name, task)


class ResidentCopy:
    """A task as a job of Spark."""

    def __init__(self, spark: "SparkSession", name: str, task: MirrorTask) -> None:
        self._failure: str | None = None
        self._is_cancelled = False
        self._job = ResidentJob(
            spark.sparkContext,
            pickle.dumps(task),
            run_resident,
            self._note_end,
            tag=name,
            description=name,
        )
        self._job.start()

    @property
    def is_running(self) -> bool:
        return self._job.is_running

    @property
    def failure(self) -> str | None:
        """Why its job failed; one that was cancelled has not."""
        return None if self._is_cancelled else self._failure

    def cancel(self) -> None:
        """Cut it off."""
        self._is_cancelled = True
        self._job.cancel()
        self._job.join(_END_S)

    def _note_end(self, error: Exception | None) -> None:
        if error is not None:
            self._failure = f"RuntimeError: {sentence_of(str(error))}"


class SparkTaskHost:
    """Tasks as resident tasks of one Spark session."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark

    def start(self, name: str, task: MirrorTask) -> RunningCopy:
        """Run a task from now on."""
        return ResidentCopy(self._spark, name, task)


def run_resident(tasks: Iterable[bytes]) -> Iterator[int]:
    """What Spark's worker does: the task of its partition, for as long as it lives."""
    for data in tasks:
        task: MirrorTask = pickle.loads(data)
        task.run(lambda: False)
        yield 1
