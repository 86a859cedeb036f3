"""The environment of the format's Python function, which all queries of a JVM share.

Spark writes the same few variables into it whenever a query starts, each in a thread of its own and
without a lock. Two that add a variable in the same moment can break the map for good: from then on
every query of the JVM fails with "Task not serializable". A name that is there already is only
given another value, which breaks nothing, so all of them are there before the first query starts.
"""

from threading import Lock
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

# What PythonStreamingSourceRunner writes; it gives each its value before anybody reads it.
WRITTEN_BY_SPARK: Final = {
    "SPARK_AUTH_SOCKET_TIMEOUT": "",
    "SPARK_BUFFER_SIZE": "",
    "SPARK_LOCAL_DIRS": "",
    "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER",
}
_FORMAT: Final = "penstock"
_turn = Lock()


def name_variables(spark: Any) -> None:
    """Have the names in the map; doing it again is harmless."""
    variables = shared_variables(spark)
    if variables is None:
        return
    with _turn:
        for name, value in WRITTEN_BY_SPARK.items():
            if name not in variables:
                variables[name] = value


def shared_variables(spark: Any) -> Any | None:
    """The map in the JVM; None: this session does not know the format.

    Spark looks for formats with a Python process; if that fails, whoever needs the format is told.
    """
    known = spark._jsparkSession.sessionState().dataSourceManager()
    try:
        if not known.dataSourceExists(_FORMAT):
            return None
        return known.lookupDataSource(_FORMAT).dataSourceCls().envVars()
    except Py4JError:
        return None
