"""A task of ours as a Spark task that does not end: one job for each, tagged, cancelled by its tag.

Spark places it and starts it again when its process dies. One job a task, never one job with
several: a bad task would take its sisters with it. What a task is, and what its end means, is its
owner's business; Connect and the mirror both run theirs so.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext


class ResidentJob:
    """The job of one task; a thread waits for its end, and tells why it came."""

    def __init__(
        self,
        context: "SparkContext",
        task: object,  # Travels to the worker by pickle.
        run: Callable[[Iterable[Any]], Iterator[Any]],  # What Spark's Python worker does with it.
        on_end: Callable[[Exception | None], None],  # None: it ended as it was told to.
        *,
        tag: str,
        description: str,
    ) -> None:
        self._context = context
        self._task = task
        self._run = run
        self._on_end = on_end
        self._tag = tag
        self._description = description
        self._thread = self._waiting_thread()

    def start(self) -> None:
        """Submit the job."""
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether it was submitted and has not ended."""
        return self._thread.is_alive()

    def cancel(self) -> None:
        """End it at once, whatever it does; its process is killed."""
        self._context.cancelJobsWithTag(self._tag)

    def join(self, timeout_s: float) -> bool:
        """Wait for its end; False: it goes on."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _waiting_thread(self) -> threading.Thread:
        from pyspark import InheritableThread

        # It takes properties of the calling thread along, as Spark wants it.
        thread: threading.Thread = InheritableThread(target=self._wait)
        thread.daemon = True
        return thread

    def _wait(self) -> None:
        trouble: Exception | None = None
        try:
            self._context.addJobTag(self._tag)
            self._context.setJobDescription(self._description)
            job: Any = self._context.parallelize([self._task], 1).mapPartitions(self._run)
            job.collect()
        except Exception as error:  # noqa: BLE001  (whatever ends the job is told)
            trouble = error
        self._on_end(trouble)
