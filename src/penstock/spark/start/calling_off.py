"""A start of Spark that can be called off: it takes long on a busy machine, and signals come.

PySpark waits for its JVM in a loop that nobody can leave, then in calls into it. If the JVM ends,
all of them end with an error, so it is ended. PySpark shows its process only when that is ready, so
it is noted when it is made.
"""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOOK_S = 0.1


@contextmanager
def called_off_by(stop: threading.Event) -> Iterator[None]:
    """While the block starts Spark, `stop` ends Spark's process, and with it the block by an error.

    Whoever catches the error asks `stop` whether it means anything.
    """
    from pyspark import java_gateway

    made: list[subprocess.Popen[bytes]] = []
    is_done = threading.Event()

    def make(*arguments: Any, **options: Any) -> "subprocess.Popen[bytes]":
        made.append(subprocess.Popen(*arguments, **options))
        return made[-1]

    def watch() -> None:
        while not is_done.wait(_LOOK_S):
            if stop.is_set() and made:
                made[-1].terminate()
                return

    watcher = threading.Thread(target=watch, name="calling off Spark", daemon=True)
    java_gateway.Popen = make  # type: ignore[attr-defined, assignment]
    watcher.start()
    try:
        yield
    finally:
        is_done.set()
        watcher.join()
        java_gateway.Popen = subprocess.Popen  # type: ignore[attr-defined]
