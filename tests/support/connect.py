"""A Connect worker as a real process, ready when it answers `/connectors`."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
from tests.support.connect_script import Answer, call
from tests.support.processes import HOST, ServerProcess, free_port, python

from penstock.config.properties import format_properties

STRINGS = "org.apache.kafka.connect.storage.StringConverter"


class ConnectProcess(ServerProcess):
    """`connect-distributed` on the brokers at `bootstrap`; settings override the defaults."""

    def __init__(
        self, directory: Path, bootstrap: str, settings: Mapping[str, str] | None = None
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.file = directory / "worker.properties"
        port = free_port()
        self.settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "workers",
            "key.converter": STRINGS,
            "value.converter": STRINGS,
            "config.storage.topic": "connect-configs",
            "offset.storage.topic": "connect-offsets",
            "status.storage.topic": "connect-status",
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "offset.storage.partitions": "3",
            "status.storage.partitions": "2",
            "offset.flush.interval.ms": "300",
            "exactly.once.source.support": "enabled",
            "heartbeat.interval.ms": "300",
            "session.timeout.ms": "6000",
            "listeners": f"http://{HOST}:{port}",
            "penstock.connect.tasks.max": "6",
            "penstock.connect.spark.log": str(directory / "spark.log"),
            **(settings or {}),
        }
        command = [python(), "-m", "penstock.cli.main", "connect-distributed", str(self.file)]
        super().__init__(command, port=port, log_path=directory / "connect.log")

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def launch(self) -> None:
        """Start with the settings as they are now."""
        self.file.write_text(format_properties(self.settings))
        super().launch()

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """One call of its REST interface."""
        return call(self.url, method, path, body)

    def answers(self) -> bool:
        """Whether it is ready."""
        assert self.process is not None
        if self.process.poll() is not None:
            code = self.process.returncode
            raise RuntimeError(f"the worker ended with code {code}:\n{self.log_end}")
        try:
            return self.ask("GET", "/connectors")[0] == 200
        except OSError:
            return False

    def places(self, *names: str) -> dict[str, str]:
        """Which worker runs each connector and task, as this one knows; those that run alone."""
        found = {}
        for name in names:
            document = self.ask("GET", f"/connectors/{name}/status")[1]
            found[name] = document.get("connector", {})
            found |= {f"{name}-{one['id']}": one for one in document.get("tasks", ())}
        return {
            name: one["worker_id"] for name, one in found.items() if one.get("state") == "RUNNING"
        }

    def states(self, name: str) -> list[str]:
        """The states of a connector and of its tasks; empty: nothing is known of it."""
        status, document = self.ask("GET", f"/connectors/{name}/status")
        if status != 200:
            return []
        tasks: list[dict[str, Any]] = document["tasks"]
        return [document["connector"]["state"], *(task["state"] for task in tasks)]


def kill(pid: int) -> None:
    """As the kernel does when memory is short."""
    os.kill(pid, signal.SIGKILL)


def task_processes(worker: ConnectProcess) -> list[psutil.Process]:
    """The Python workers that tasks run in: what Spark's daemon has forked."""
    assert worker.process is not None
    below = psutil.Process(worker.process.pid).children(recursive=True)
    parents = {one.pid: _parent(one) for one in below if _is_daemon(one)}
    daemons = {pid for pid, parent in parents.items() if parent not in parents}
    return [one for one in below if parents.get(one.pid) in daemons]


def _parent(process: psutil.Process) -> int | None:
    try:
        return int(process.ppid())
    except psutil.Error:
        return None  # It has ended.


def _is_daemon(process: psutil.Process) -> bool:
    try:
        return "penstock.connect.running.daemon" in process.cmdline()
    except psutil.Error:
        return False
