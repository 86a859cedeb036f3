"""A Connect task as a resident task of Spark (`penstock.queries.resident`), and its session.

What the loop raises is told over its line and ends the job in good order, so that Spark's own
retries are for dead processes alone.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from penstock.connect.running.control import TaskRun
from penstock.connect.running.spec import TaskSpec
from penstock.queries.resident import ResidentJob

if TYPE_CHECKING:
    from pyspark import SparkContext

ATTEMPTS_MAX = 4  # Of Spark's own, when processes die.


class ResidentTask(ResidentJob):
    """The job of one run of a task."""

    def __init__(
        self,
        context: "SparkContext",
        spec: TaskSpec,
        on_end: Callable[[TaskRun, str | None], None],
    ) -> None:
        self.run = TaskRun(spec.connector, spec.task, spec.run)
        super().__init__(
            context,
            spec,
            run_partition,
            lambda error: on_end(self.run, None if error is None else str(error)),
            tag=f"connect-{spec.task}-{spec.run}-{id(self)}",
            description=f"Connect task {spec.name}",
        )


def run_partition(specs: Iterable[TaskSpec]) -> Iterator[str]:
    """What Spark's Python worker runs."""
    from penstock.connect.running.task_loop import run_task

    for spec in specs:
        yield run_task(spec)


def spark_conf() -> dict[str, str]:
    """What a session for resident tasks needs."""
    return {
        "spark.python.daemon.module": "penstock.connect.running.daemon",
        "spark.speculation": "false",
        "spark.dynamicAllocation.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    }


def spark_master(tasks_max: int) -> str:
    """This machine, with a slot for every task: a resident task never gives its slot back."""
    return f"local[{tasks_max},{ATTEMPTS_MAX}]"
