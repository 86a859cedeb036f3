"""The daemon that resident tasks are forked from, with what they import loaded before the fork.

Fifty tasks then share the pages of the libraries: about 25 MB a task instead of 43. The session of
Connect names this module in `spark.python.daemon.module`.
"""

import contextlib
import gc
import importlib

from penstock.spark.start.worker_daemon import preload

_PRELOADED = (
    "penstock.client.producer.producer",
    "penstock.client.consumer.consumer",
    "penstock.connect.running.task_loop",
)


def preload_connect() -> None:
    """Load what tasks need, and keep the collector from touching the shared pages."""
    preload()
    for name in _PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()


if __name__ == "__main__":
    preload_connect()
    from pyspark.daemon import manager

    manager()
