"""`penstock server --processes N` as a real process, on free ports in a row."""

import contextlib
import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path

from tests.support.processes import HOST, ServerProcess, free_port, python
from tests.support.waiting import eventually

from penstock.config.processes import PROCESSES
from penstock.config.properties import format_properties
from penstock.platform.directory import PlatformDirectory
from penstock.platform.state import ProcessState, TreeState


def free_row(count: int) -> int:
    """The first of so many ports in a row that nobody listens on."""
    for _ in range(200):
        first = free_port()
        if all(_is_free(first + number) for number in range(1, count)):
            return first
    raise AssertionError(f"there are no {count} free ports in a row")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return True
    return False


class MachineProcesses(ServerProcess):
    """The supervisor and its brokers; ready when every broker answers."""

    def __init__(self, folder: Path, count: int, settings: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.count = count
        self.file = folder / "server.properties"
        self.data = folder / "data"
        first = free_row(count)
        self.settings = {
            "listeners": f"PLAINTEXT://{HOST}:{first}",
            "log.dirs": str(self.data),
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
            "group.initial.rebalance.delay.ms": "0",
            "replica.lag.time.max.ms": "5000",
            **(settings or {}),
        }
        self.ports = tuple(range(first, first + count))
        self.directory = PlatformDirectory(self.data / PROCESSES)
        command = [python(), "-m", "penstock.cli.main", "server", str(self.file)]
        super().__init__(command, port=first, log_path=folder / "machine.out")

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.ports)

    def launch(self) -> None:
        """Start with the settings and the count as they are now."""
        self.file.write_text(format_properties(self.settings))
        self.command[5:] = ["--processes", str(self.count)]
        super().launch()

    def answers(self) -> bool:
        """Whether every broker has answered."""
        assert self.process is not None
        if self.process.poll() is not None:
            code = self.process.returncode
            raise RuntimeError(f"the supervisor ended with code {code}:\n{self.log_end}")
        state = self.directory.state()
        return state is not None and state.is_up and state.supervisor.pid == self.pid

    def state(self) -> TreeState:
        found = eventually(self.directory.state, what="a state")
        assert found is not None
        return found

    def broker(self, broker_id: int) -> ProcessState:
        (found,) = [one for one in self.state().processes if one.name == f"broker-{broker_id}"]
        return found

    def signal_broker(self, broker_id: int, number: int) -> int:
        """Send it a signal; its process id."""
        identity = self.broker(broker_id).identity
        assert identity is not None, "it does not run"
        os.kill(identity.pid, number)
        return identity.pid

    def kill_broker(self, broker_id: int) -> None:
        """kill -9, and wait until another process has taken its place and answers."""
        before = self.broker(broker_id).restarts
        self.signal_broker(broker_id, signal.SIGKILL)
        eventually(
            lambda: self.broker(broker_id).restarts > before and self.broker(broker_id).is_ready,
            timeout_s=180,
            what=f"broker {broker_id} to be back",
        )

    def broker_log(self, broker_id: int) -> str:
        return self.directory.log_of(f"broker-{broker_id}").read_text(errors="replace")
