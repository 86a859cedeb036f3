"""What PySpark's writers lack for a data source in Python, added to them once per process.

Spark's own Kafka sink takes the mode that a write has when nobody chose one, and any thread may
start a query to it. For a data source in Python Spark refuses that mode, and looks for the source
in the session that is active in the calling thread, of which a new thread has none. Queries that
start at once can break what they share (`source/shared_variables.py`). `session` and `register`
call `complete_writers`; nothing else of PySpark is touched.
"""

import functools
from typing import Any

from pyspark.sql import DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.spark.source.checkpoint_owner import claim_checkpoint
from penstock.spark.source.shared_variables import name_variables

_FORMAT = "penstock"
_UNCHOSEN = "ErrorIfExists"
_DONE = "_penstock_completed"


def complete_writers() -> None:
    """Let `save` append by default, and `start` run in any thread; doing it again is harmless."""
    if hasattr(DataStreamWriter, _DONE):
        return
    DataFrameWriter.save = _appending(DataFrameWriter.save)  # type: ignore[method-assign]
    DataStreamWriter.start = _prepared(DataStreamWriter.start)  # type: ignore[method-assign]
    setattr(DataStreamWriter, _DONE, True)


def _appending(save: Any) -> Any:
    @functools.wraps(save)
    def save_or_append(
        self: Any,
        path: str | None = None,
        format: str | None = None,  # noqa: A002  (PySpark's name)
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803
        **options: Any,
    ) -> None:
        if format is not None:
            self.format(format)
        self.mode(mode)
        written = self._jwrite
        if written.source() == _FORMAT and written.curmode().toString() == _UNCHOSEN:
            self.mode("append")
        save(self, path, None, None, partitionBy, **options)

    return save_or_append


def _prepared(start: Any) -> Any:
    @functools.wraps(start)
    def start_in_any_thread(self: Any, *arguments: Any, **options: Any) -> Any:
        activate(self._spark)
        name_variables(self._spark)
        claim_checkpoint(self, options.get("checkpointLocation"))
        return start(self, *arguments, **options)

    return start_in_any_thread


def activate(spark: Any) -> None:
    """Make it the session of this thread in the JVM."""
    spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
