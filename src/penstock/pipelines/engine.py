"""Spark's own process for a supervisor: started quietly, watched, and never left behind.

What the JVM and its Python workers print goes to a file, not between the lines of the view. PySpark
offers no way to say so when it makes a session, so the JVM is launched here with PySpark's own
function, and `penstock.spark.session` finds it running.
"""

import contextlib
import os
import subprocess
import sys
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
    ) -> Self:
        """Start Spark; EngineFailed tells why it did not."""
        from penstock.spark.quiet import hush_accumulators
        from penstock.spark.sessions import default_conf, session

        chosen = master or os.environ.get("SPARK_MASTER") or "local[*]"
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.streaming.numRecentProgressUpdates": "20",
            **conf,
        }
        process = _launch({**default_conf(chosen), **settings, "spark.master": chosen}, log)
        try:
            spark = session(name, master=chosen, conf=settings)
            hush_accumulators(spark)
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


def _launch(conf: Mapping[str, str], log: Path) -> "subprocess.Popen[bytes]":
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    from penstock.spark.java import find_java_home
    from penstock.spark.quiet import hush_py4j

    if SparkContext._gateway is not None:
        raise CommandError("Spark runs already in this process; a supervisor needs its own.")
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable  # The JVM starts its workers with it.
    hush_py4j()
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LOG_BYTES_MAX:
        log.replace(log.with_suffix(".log.1"))
    pairs = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    with log.open("ab") as target:
        try:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                pairs, {"stdout": target, "stderr": target}
            )
        except Exception as error:
            raise EngineFailed(f"Spark did not start; {log} tells why.") from error
    SparkContext._ensure_initialized(gateway=gateway)
    process: subprocess.Popen[bytes] = gateway.proc
    return process


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
    from penstock.pipelines.failure import sentence_of

    if master.startswith("spark://"):
        return f"Spark did not start on {master}: {sentence_of(str(error))} ({log} has the rest.)"
    return f"Spark did not start: {sentence_of(str(error))} ({log} has the rest.)"
