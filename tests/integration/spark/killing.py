"""For tests that kill Spark: a driver that is started again, and rows that keep coming."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

import confluent_kafka
import psutil
from tests.support.processes import ROOT, python

from penstock.spark.start.worker_start import DAEMON_CONF

DAEMONS = frozenset({"pyspark.daemon", *DAEMON_CONF.values()})  # The modules that they run.


class DriverProcess:
    """The driver with its JVM and its Python workers, started again whenever it is gone."""

    def __init__(
        self,
        module: str,
        address: str,
        directory: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.starts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._command = [python(), "-m", module, address, str(directory)]
        self._environment = {**os.environ, **(environment or {})}

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def ensure(self) -> None:
        """Start it unless it runs."""
        if self.runs:
            return
        self.starts += 1
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )

    def family(self) -> list[psutil.Process]:
        """The driver and all that it has started."""
        if self.process is None or not self.runs:
            return []
        driver = psutil.Process(self.process.pid)
        return [driver, *driver.children(recursive=True)]

    def workers(self) -> list[psutil.Process]:
        """Python processes of Spark's tasks and commits."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return [one for one in self.family()[1:] if _is_forked_by_a_daemon(one)]
        return []

    def kill(self) -> None:
        """SIGKILL to all of it at once."""
        for one in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        if self.process is not None:
            self.process.wait()

    @property
    def log_path(self) -> Path:
        return self.directory / f"driver-{self.starts}.log"

    @property
    def log_end(self) -> str:
        return self.log_path.read_text(errors="replace")[-3000:]


def _is_forked_by_a_daemon(process: psutil.Process) -> bool:
    parent = process.parent()
    return parent is not None and not DAEMONS.isdisjoint(parent.cmdline())


class Feeder(threading.Thread):
    """Writes numbered rows until told to stop."""

    rows_at_once: int
    every_s: float

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.count = 0
        self.stopping = threading.Event()
        self.producer = confluent_kafka.Producer(
            {"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5}
        )

    def write(self, number: int) -> None:
        """Send the row of this number."""
        raise NotImplementedError

    def run(self) -> None:
        while not self.stopping.wait(self.every_s):
            for number in range(self.count, self.count + self.rows_at_once):
                self.write(number)
            self.count += self.rows_at_once
            self.producer.poll(0)

    def stop(self) -> int:
        """How many rows there are now, all stored."""
        self.stopping.set()
        self.join()
        assert self.producer.flush(120) == 0
        return self.count
