"""Loaded by every Python process of a driver under test: strikes at one exact step of a batch.

Spark runs tasks and commits in processes of its own, below the JVM, which is below the driver. An
order (a file that the test leaves: whom, at which step, of which table) is carried out from there,
at a place that no signal from outside could hit. Whoever takes the order away carries it out.
"""

import contextlib
import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ORDERS = os.environ.get("LAKE_STRIKES", "")  # A folder: order, taken, and the process ids.


def strike(step: str, table: str) -> None:
    """Carry the order out, if there is one for this step of this table."""
    folder = Path(ORDERS)
    try:
        wanted = json.loads((folder / "order").read_text())
    except FileNotFoundError:
        return
    if (wanted["step"], wanted["table"]) != (step, table):
        return
    try:
        (folder / "order").rename(folder / "taken")
    except FileNotFoundError:
        return  # Another task of the same batch was first.
    for process in victims(wanted["victim"], folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def victims(name: str, folder: Path) -> list[int]:
    """Who dies, in this order; whoever strikes last."""
    if name == "worker":
        return [os.getpid()]
    if name == "broker":
        return [int((folder / "broker.pid").read_text())]
    driver = int((folder / "driver.pid").read_text())
    if name == "driver alone":  # As by a user's kill -9: the JVM finds out, and ends.
        return [driver]
    return family(driver)


def family(driver: int) -> list[int]:
    """From the driver down, so that nothing of it gets to see the others go."""
    import psutil

    below = [each.pid for each in psutil.Process(driver).children(recursive=True)]
    return [driver, *(pid for pid in below if pid != os.getpid()), os.getpid()]


def around(owner: Any, name: str, table_of: Callable[..., str], **steps: str) -> None:
    """Have a method strike before it begins or after it is done."""
    function = getattr(owner, name)

    @functools.wraps(function)
    def wrapped(*args: Any, **more: Any) -> Any:
        if "before" in steps:
            strike(steps["before"], table_of(*args))
        result = function(*args, **more)
        if "after" in steps:
            strike(steps["after"], table_of(*args))
        return result

    setattr(owner, name, wrapped)


def arrange_tasks() -> None:
    """In a Python worker, which writes the files."""
    from penstock.lake.writing import files

    around(files.TaskFiles, "write", of_spec, after="writing")
    around(files.TaskFiles, "close", of_spec, after="written")


def arrange_commits() -> None:
    """Where the files become data: Spark's process for the sink, or the driver for merges."""
    from penstock.lake.formats import delta, iceberg, parquet, parquet_log

    for table in (delta.DeltaLakeTable, iceberg.IcebergLakeTable, parquet.ParquetLakeTable):
        around(table, "append", of_spec, before="before commit", after="committed")
        around(table, "evolve", of_spec, after="evolved")
        around(table, "compact", of_spec, before="before compaction", after="compacted")
    around(iceberg.IcebergLakeTable, "_put_together", of_spec, after="half compacted")
    around(parquet.ParquetLakeTable, "_rebuild_folder", of_spec, after="half compacted")
    around(parquet_log.ParquetLog, "add", of_log, after="logged")


def of_spec(owner: Any, *_: Any) -> str:
    return Path(owner._spec.directory).name


def of_log(owner: Any, *_: Any) -> str:
    return str(owner._folder.parents[1].name)


ROLE = sys.orig_argv[-1]  # Spark starts a process for each of its roles.
if ORDERS and ROLE == "pyspark.worker":
    arrange_tasks()
elif ORDERS and ROLE == "pyspark.sql.worker.python_streaming_sink_runner":
    arrange_commits()
