"""A SparkSession that is ready for topics: Java found, format registered, measured defaults.

The defaults are what was measured to be best for micro-batches on a few cores; whatever the caller
gives in `conf` wins. docs/adr/0011-spark.md gives the reasons.
"""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.java import find_java_home
from penstock.spark.data_source import PenstockDataSource
from penstock.spark.sink.writers import complete_writers
from penstock.spark.start.launch import is_launched, launch_quietly
from penstock.spark.start.standalone import LOOPBACK, driver_conf
from penstock.spark.start.worker_start import DAEMON_CONF, is_local, worker_environment

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# One rename instead of a temporary file, a checksum file and two renames: a third of the time of a
# small micro-batch. It needs a rename that is atomic, which object stores do not have.
_RENAMING_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_ARROW_ROWS = 10_000


def session(
    name: str = "penstock",
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    workers_python: str | Path | None = None,
) -> SparkSession:
    """A session in which `format("penstock")` works; the running one, where there is one.

    `master` defaults to SPARK_MASTER of the environment, or to all cores of this machine.
    `workers_python` is the interpreter of the workers, for a cluster whose machines have it
    elsewhere than this one.
    """
    master = master or os.environ.get("SPARK_MASTER") or "local[*]"
    _prepare_environment(master, workers_python)
    settings = {**default_conf(master), **(conf or {})}
    is_ready = None if is_launched() else launch_quietly(master, settings)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    ready = builder.getOrCreate()
    if is_ready is not None:
        is_ready.set()
    complete_writers()
    if find_spec("pyspark_penstock") is None:  # Otherwise Spark finds the format by itself.
        register(ready)
    return ready


def register(spark: SparkSession) -> None:
    """Make `format("penstock")` known to a session, and writing to it as simple as to Kafka."""
    complete_writers()
    spark.dataSource.register(PenstockDataSource)


def default_conf(master: str) -> dict[str, str]:
    """What `session` sets unless told otherwise."""
    conf = {
        "spark.scheduler.mode": "FAIR",  # Many queries share one session.
        "spark.sql.shuffle.partitions": str(max(2, _cores(master))),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ARROW_ROWS),
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith(("local", "spark:")):
        conf["spark.sql.streaming.checkpointFileManagerClass"] = _RENAMING_CHECKPOINTS
    if is_local(master):
        conf.update(DAEMON_CONF)
    return {**conf, **driver_conf(master)}


def _cores(master: str) -> int:
    inside = master.removeprefix("local[").removesuffix("]").partition(",")[0]
    return int(inside) if inside.isdigit() else os.cpu_count() or 2


def _prepare_environment(master: str, workers_python: str | Path | None) -> None:
    """Before the JVM starts; one that runs already keeps what it has."""
    if SparkSession.getActiveSession() is None:
        os.environ["JAVA_HOME"] = str(find_java_home())
    if driver_conf(master):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)  # The web page listens there, too.
    os.environ.update(worker_environment(workers_python, is_here=is_local(master)))


def end(spark: "SparkSession") -> None:
    """Stop a session; one whose process has died is stopped already."""
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

    try:
        spark.stop()
    except (Py4JError, ConnectionError) as error:
        if isinstance(error, Py4JJavaError):
            raise
