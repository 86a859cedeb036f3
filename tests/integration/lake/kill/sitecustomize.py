"""Loaded by every Python process of a driver under test: kills the driver at one exact step.

Spark runs tasks and commits in processes of its own, below the JVM, which is below the driver. The
step named in the environment sends SIGKILL from there to all of them, at a place that no signal
from outside could hit. It happens once, and not before the second batch.
"""

import contextlib
import functools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def kill_the_driver() -> None:
    import psutil

    above = psutil.Process().parents()
    try:
        Path(os.environ["LAKE_KILL_MARKER"]).touch(exist_ok=False)
    except FileExistsError:
        return
    driver = int(Path(os.environ["LAKE_KILL_DRIVER"]).read_text())
    at = next(i for i, process in enumerate(above) if process.pid == driver)
    # From the driver down, so that nothing of it gets to see the others go.
    for process in reversed(above[: at + 1]):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def killing(
    function: Callable[..., Any], batch_of: Callable[..., int], *, after: bool = True
) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any, **more: Any) -> Any:
        if not after and batch_of(*args, **more) >= 1:
            kill_the_driver()
        result = function(*args, **more)
        if batch_of(*args, **more) >= 1:
            kill_the_driver()
        return result

    return wrapped


def arrange_tasks(step: str) -> None:
    from penstock.lake import files

    task: Any = files.TaskFiles
    if step == "task-writing":
        task.write = killing(task.write, lambda self, rows: self._origin[1])
    elif step == "task-written":
        task.close = killing(task.close, lambda self: self._origin[1])


def arrange_commits(step: str) -> None:
    from penstock.lake import delta, iceberg, parquet

    tables: tuple[Any, ...] = (
        delta.DeltaLakeTable,
        iceberg.IcebergLakeTable,
        parquet.ParquetLakeTable,
    )
    if step in ("before-commit", "after-commit"):
        named = lambda *_, batch_id, **__: batch_id  # noqa: E731
        for table in tables:
            table.append = killing(table.append, named, after=step == "after-commit")
    elif step == "table-created":
        for table in tables:
            table.evolve = killing(table.evolve, lambda *_: 1)
    elif step == "log-entry-written":
        plain: Any = parquet.ParquetLakeTable
        last = lambda self: max(self._state.batches.values(), default=-1)  # noqa: E731
        plain._carry_out = killing(plain._carry_out, last, after=False)


STEP = os.environ.get("LAKE_KILL_AT", "")
ROLE = sys.orig_argv[-1]  # Spark starts a process for each of its roles.
if STEP.startswith("task-") and ROLE == "pyspark.worker":
    arrange_tasks(STEP)
elif STEP and ROLE == "pyspark.sql.worker.python_streaming_sink_runner":
    arrange_commits(STEP)
