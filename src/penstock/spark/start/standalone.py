"""A Spark standalone cluster on machines of one's own: its master and its workers.

pip's package of Spark has no start scripts, but it has all they would start. The process becomes
Spark's own (exec), so signals and exit codes are Spark's. Both listen on the loopback address
unless told otherwise: a Spark master runs the code of whoever reaches it.
"""

import os
import re
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import CommandError, ConfigError
from penstock.java import find_java_home

LOOPBACK = "127.0.0.1"
MASTER_PORT = 7077
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_MEMORY = re.compile(r"\d+[kKmMgG]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A process to become: its command, and what its environment has beyond ours."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def master(*, host: str = LOOPBACK, port: int = MASTER_PORT, webui_port: int = 8080) -> Launch:
    """The process that hands out the workers' cores."""
    _check_free(host, port)
    arguments = ["--host", host, "--port", str(port), "--webui-port", str(webui_port)]
    return Launch(command=(_spark_class(), _MASTER, *arguments), environment=_environment(host))


def worker(
    master_url: str,
    *,
    host: str = LOOPBACK,
    cores: int | None = None,
    memory: str | None = None,
    work_dir: Path,
    webui_port: int = 0,
) -> Launch:
    """A process that runs executors for a master; all cores and most memory unless told."""
    if not re.fullmatch(r"spark://[^/\s]+:\d+(,[^/\s]+:\d+)*", master_url):
        raise ConfigError(f"{master_url!r} is not the URL of a master: write spark://host:port")
    if memory is not None and not _MEMORY.fullmatch(memory):
        raise ConfigError(f"--memory {memory}: write a size such as 512m or 4g")
    arguments = ["--host", host, "--webui-port", str(webui_port), "--work-dir", str(work_dir)]
    if cores is not None:
        arguments += ["--cores", str(cores)]
    if memory is not None:
        arguments += ["--memory", memory]
    environment = _environment(host)
    return Launch(
        command=(_spark_class(), _WORKER, *arguments, master_url), environment=environment
    )


def become(launch: Launch) -> None:
    """Replace this process by Spark's."""
    sys.stdout.flush()
    os.execve(launch.command[0], list(launch.command), {**os.environ, **launch.environment})


def driver_conf(master_url: str) -> dict[str, str]:
    """Where a driver is to listen: on this machine alone, unless its workers may be elsewhere."""
    host = master_url.removeprefix("spark://").partition(",")[0].rpartition(":")[0]
    if master_url.startswith("local") or host in (LOOPBACK, "localhost"):
        return {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return {}


def spark_home() -> Path:
    """Where pip put Spark."""
    import importlib.util

    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise CommandError("Spark is not installed: pip install pyspark")
    return Path(found.submodule_search_locations[0])


def _spark_class() -> str:
    return str(spark_home() / "bin" / "spark-class")


def _environment(host: str) -> dict[str, str]:
    return {
        "JAVA_HOME": str(find_java_home()),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": host,
        # The driver names its own interpreter; this one stands where it names none.
        "PYSPARK_PYTHON": sys.executable,
    }


def _check_free(host: str, port: int) -> None:
    """Spark would quietly take the next port, and nobody would find it there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"The master cannot listen on {host}:{port}: {error.strerror}. Stop what listens "
                "there, or choose another --port."
            ) from None
