"""Debian's mosquitto, a real MQTT server, on a free port of the loopback; gone with the test."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.outside import needs
from tests.support.processes import HOST, ServerProcess, free_port


class Mosquitto(ServerProcess):
    """One server; what it keeps for sessions survives a restart."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        program = needs("mosquitto")
        directory.mkdir(parents=True, exist_ok=True)
        port = free_port()
        lines = {
            "listener": f"{port} {HOST}",
            "allow_anonymous": "true",
            "persistence": "true",
            "persistence_location": f"{directory}/",
            "max_queued_messages": "0",
            "user": "root",
            **(settings or {}),
        }
        file = directory / "mosquitto.conf"
        file.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
        command = [str(program), "-c", str(file)]
        super().__init__(command, port=port, log_path=directory / "mosquitto.log")

    @property
    def uri(self) -> str:
        return f"tcp://{self.address}"

    def answers(self) -> bool:
        """Whether it takes connections."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"mosquitto ended:\n{self.log_end}")
        with socket.create_connection((HOST, self.port), 5):
            return True


@contextmanager
def mosquitto(directory: Path, **settings: str) -> Iterator[Mosquitto]:
    """A server that runs."""
    with Mosquitto(directory, settings) as server:
        server.start()
        yield server
