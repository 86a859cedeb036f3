"""Spark's own process for one session of queries: started quietly, watched, and never left behind.

What the JVM and its Python workers print goes to a file, not between the lines of the view. So the
JVM is launched before there is a session, and `penstock.spark.session` finds it running.
"""

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from penstock.errors import CommandError, PenstockError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_BYTES_MAX = 10 << 20
_END_S = 15.0


class EngineFailed(PenstockError):
    """Spark's process did not start, or has ended."""


class Engine:
    """A session and the process behind it."""

    def __init__(self, spark: "SparkSession", process: "subprocess.Popen[bytes]") -> None:
        self.spark = spark
        self._process = process

    @classmethod
    def start(
        cls,
        name: str,
        *,
        master: str | None,
        conf: Mapping[str, str],
        log: Path,
        py_files: Iterable[str] = (),
        stop: threading.Event,
    ) -> Self:
        """Start Spark; EngineFailed tells why it did not. `stop` calls the start off."""
        from penstock.spark.start.calling_off import called_off_by

        with called_off_by(stop):
            return cls._start(name, master=master, conf=conf, log=log, py_files=py_files)

    @classmethod
    def _start(
        cls,
        name: str,
        *,
        master: str | None,
        conf: Mapping[str, str],
        log: Path,
        py_files: Iterable[str],
    ) -> Self:
        from penstock.spark.start.quiet import hush_accumulators, hush_batches
        from penstock.spark.start.sessions import default_conf, session

        chosen = master or os.environ.get("SPARK_MASTER") or "local[*]"
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.streaming.numRecentProgressUpdates": "20",
            **conf,
        }
        process = _launch(chosen, {**default_conf(chosen), **settings}, log)
        try:
            spark = session(name, master=chosen, conf=settings)
            hush_accumulators(spark)
            hush_batches(spark)
            for file in py_files:
                spark.sparkContext.addPyFile(file)
        except Exception as error:
            _end(process)
            raise EngineFailed(_why(error, chosen, log)) from error
        return cls(spark, process)

    @property
    def is_alive(self) -> bool:
        """Whether Spark's process is still there."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the session and its process, and wait until it is gone."""
        if self.is_alive:
            with contextlib.suppress(Exception):  # It may be gone this very moment.
                self.spark.stop()
        _end(self._process)


def _launch(master: str, conf: Mapping[str, str], log: Path) -> "subprocess.Popen[bytes]":
    from penstock.java import find_java_home
    from penstock.spark.start.launch import is_launched, launch
    from penstock.spark.start.quiet import hush_py4j
    from penstock.spark.start.worker_start import is_local, worker_environment

    if is_launched():
        raise CommandError("Spark runs already in this process; a supervisor needs its own.")
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ.update(worker_environment(is_here=is_local(master)))
    hush_py4j()
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LOG_BYTES_MAX:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as target:
        try:
            return launch(master, conf, {"stdout": target, "stderr": target})
        except Exception as error:
            raise EngineFailed(f"Spark did not start; {log} tells why.") from error


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Close what the JVM waits on, so that it ends; then forget it, so that another may start."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway
    if gateway is not None:
        with contextlib.suppress(Exception):
            gateway.shutdown()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def _why(error: Exception, master: str, log: Path) -> str:
    from penstock.queries.failure import sentence_of

    if master.startswith("spark://"):
        return f"Spark did not start on {master}: {sentence_of(str(error))} ({log} has the rest.)"
    return f"Spark did not start: {sentence_of(str(error))} ({log} has the rest.)"
