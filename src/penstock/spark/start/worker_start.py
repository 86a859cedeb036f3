"""How Spark starts its Python processes here: connected early, few imports, those before the fork.

Spark puts a zip with PySpark's sources in front of the path of every Python process that it starts.
Each of them then compiles PySpark anew, which takes three times as long as all its other imports,
and one that plans a stream has ten seconds for them. So the processes of this machine start through
`worker_python.sh`: the installed PySpark is found, and those that Spark waits for connect before
they import (`early_connection`). Tasks are forked from a daemon that has loaded what they need
(`worker_daemon`). Machines of a cluster may lack all that: there Spark's own way stays.
"""

import os
import sys
from pathlib import Path

DAEMON_CONF = {"spark.python.daemon.module": "penstock.spark.start.worker_daemon"}
_LAUNCHER = Path(__file__).with_name("worker_python.sh")


def is_local(master: str) -> bool:
    """Whether Spark's workers are processes of this machine, below the driver's own."""
    return master.startswith("local")


def worker_environment(python: str | Path | None = None, *, is_here: bool) -> dict[str, str]:
    """What names the workers' interpreter; `is_here`: they all run on this machine.

    The workers need what this interpreter has; the first python3 on their PATH may not have it.
    """
    if python is not None or not is_here or not _can_launch():
        chosen = str(python or sys.executable)
        return {"PYSPARK_PYTHON": chosen, "PYSPARK_DRIVER_PYTHON": sys.executable}
    # Spark takes the driver's interpreter for processes that look for data sources.
    return {
        "PENSTOCK_WORKER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": str(_LAUNCHER),
        "PYSPARK_DRIVER_PYTHON": str(_LAUNCHER),
    }


def _can_launch() -> bool:
    """Whether the launcher can run, and PySpark is installed outside of Spark's zip."""
    import pyspark

    return os.access(_LAUNCHER, os.X_OK) and Path(pyspark.__file__).is_file()
