"""The daemon that Spark forks its task workers from, with what they import loaded before the fork.

PySpark's own loads nothing, since a thread does not survive a fork. What is loaded here starts
none: pyarrow's allocator is told to, and Spark itself limits numpy to the calling thread.
pyarrow loads pandas with the first array that it makes from Python values, so it is here as well.
"""

import contextlib
import importlib
import os

_PRELOADED = (
    "pyspark.worker",
    "pyarrow.compute",
    "pandas",
    "penstock.spark.source.stream_reader",
    "penstock.spark.sink.sink",
)


def preload() -> None:
    """Load what tasks need; what is not installed is not needed."""
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in _PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


if __name__ == "__main__":
    preload()
    from pyspark.daemon import manager

    manager()
