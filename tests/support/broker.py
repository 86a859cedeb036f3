"""Penstock's own broker as a real process, on a free port and a directory of the test's."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.processes import HOST, ServerProcess, free_port, python


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
            **(settings or {}),
        }
        port = port or free_port()
        super().__init__([], port=port, log_path=directory / "server.log")

    def launch(self) -> None:
        """Start with the settings as they are now; a test may change them between starts."""
        settings = {"listeners": f"PLAINTEXT://{HOST}:{self.port}", **self.settings}
        self.command = server_command(settings)
        super().launch()

    def partition_dir(self, topic: str, partition: int = 0) -> Path:
        """Where the partition's segments are."""
        return self.data / f"{topic}-{partition}"


def server_command(settings: Mapping[str, str]) -> list[str]:
    """The command line that starts a broker with these settings."""
    command = [python(), "-m", "penstock.cli.main", "server"]
    for name, value in settings.items():
        command += ["--override", f"{name}={value}"]
    return command
