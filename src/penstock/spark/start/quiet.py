"""What PySpark prints when its JVM goes away, kept off the screen: we say it in a sentence.

Called by those who own a terminal, the commands; a library must not touch the logging of others.
"""

import logging
import sys
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHATTY: Final = (
    "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkStateServer",
    "org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor",
)


def hush_py4j() -> None:
    """Its own logger, and the traces that it gives to the root logger."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_py4j)  # Adding it again changes nothing.


def hush_accumulators(spark: "SparkSession") -> None:
    """PySpark's server for accumulators would print a trace when the JVM hangs up."""
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is None:
        return
    tell = server.handle_error

    def handle_error(request: object, address: object) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            tell(request, address)

    server.handle_error = handle_error


def hush_batches(spark: "SparkSession") -> None:
    """Spark would warn for each page of state that is new, and of each batch longer than its pause.

    Neither is a fault, and both come many times a second for as long as a query runs.
    """
    jvm = cast(Any, spark.sparkContext._jvm)
    log4j = jvm.org.apache.logging.log4j
    for name in CHATTY:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.ERROR)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "/py4j/" not in record.pathname
