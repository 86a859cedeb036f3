"""The daemon that the mirror's tasks are forked from: with what they import, and nothing else.

They copy batches as bytes, so neither pyarrow nor pandas is among it, and a third of the memory of
Spark's usual daemon is enough. The mirror's session names this module in
`spark.python.daemon.module`.
"""

import gc
import importlib
from typing import Final

PRELOADED: Final = ("pyspark.worker", "penstock.mirror.running.hosts")


def preload_mirror() -> None:
    """Load what tasks need, and keep the collector from touching the shared pages."""
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()


if __name__ == "__main__":
    preload_mirror()
    from pyspark.daemon import manager

    manager()
