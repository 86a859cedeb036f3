"""Penstock's own broker as a real process, on a free port and a directory of the test's.

PENSTOCK_TEST_BROKERS=3 makes each of them a cluster of three processes, with every topic on all of
them: whoever uses brokers must not notice, so the tests of services can be run so, too.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from tests.support.processes import HOST, ServerProcess, free_port, python

BROKERS = int(os.environ.get("PENSTOCK_TEST_BROKERS", "1"))
REPLICATED = {
    "default.replication.factor": str(BROKERS),
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
}


class BrokerProcess(ServerProcess):
    """`penstock server` with its data in `directory`; settings override the defaults."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
        broker_id: int = 0,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.data = directory / "data"
        self.settings = {
            "broker.id": str(broker_id),
            "log.dirs": str(self.data),
            **(REPLICATED if BROKERS > 1 else {}),
            **(settings or {}),
        }
        port = port or _free_row(BROKERS)
        super().__init__([], port=port, log_path=directory / "server.log")

    def launch(self) -> None:
        """Start with the settings as they are now; a test may change them between starts."""
        settings = {"listeners": f"PLAINTEXT://{HOST}:{self.port}", **self.settings}
        self.command = server_command(settings)
        if self._is_row:
            self.command += ["--processes", str(BROKERS)]
        super().launch()

    def answers(self) -> bool:
        """Whether it answers; of a row of processes, whether the last one does."""
        return super().answers() and (not self._is_row or "Everything answers" in self.log)

    @property
    def _is_row(self) -> bool:
        return BROKERS > 1 and "zookeeper.connect" not in self.settings

    def partition_dir(self, topic: str, partition: int = 0) -> Path:
        """Where the partition's segments are."""
        return self.data / f"{topic}-{partition}"


def _free_row(count: int) -> int:
    """The first of so many free ports in a row."""
    ports = [free_port()]
    while len(ports) < count:
        port = free_port()
        ports = [*ports, port] if port == ports[-1] + 1 else [port]
    return ports[0]


def server_command(settings: Mapping[str, str]) -> list[str]:
    """The command line that starts a broker with these settings."""
    command = [python(), "-m", "penstock.cli.main", "server"]
    for name, value in settings.items():
        command += ["--override", f"{name}={value}"]
    return command
