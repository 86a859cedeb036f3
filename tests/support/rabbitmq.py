"""Debian's RabbitMQ on free ports of the loopback, with all files in one directory.

Erlang finds its nodes by a daemon, epmd, which would stay behind: so one is started here, on a port
of its own, in the process group of the server, and ends with it.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.outside import needs
from tests.support.processes import HOST, ServerProcess, free_port

_PROGRAM = "/usr/lib/rabbitmq/bin/rabbitmq-server"  # What /usr/sbin has changes the user.


class RabbitProcess(ServerProcess):
    """One server; queues that are durable survive a restart."""

    def __init__(self, directory: Path) -> None:
        needs("rabbitmq")
        directory.mkdir(parents=True, exist_ok=True)
        port, names = free_port(), free_port()
        settings = {
            "HOME": directory,
            "ERL_EPMD_PORT": names,
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_NODENAME": f"test{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": port,
            "RABBITMQ_DIST_PORT": free_port(),
            "RABBITMQ_MNESIA_BASE": directory / "data",
            "RABBITMQ_LOG_BASE": directory / "logs",
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_CONFIG_FILE": directory / "none",
            "RABBITMQ_ENABLED_PLUGINS_FILE": directory / "plugins",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1",
        }
        words = " ".join(f"'{name}={value}'" for name, value in settings.items())
        script = f"epmd -address {HOST} -port {names} & exec env {words} {_PROGRAM}"
        super().__init__(["sh", "-c", script], port=port, log_path=directory / "rabbitmq.log")

    def answers(self) -> bool:
        """Whether it speaks AMQP: to what it does not know it says which version it knows."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"rabbitmq-server ended:\n{self.log_end}")
        with socket.create_connection((HOST, self.port), 5) as line:
            line.sendall(b"AMQP\x00\x00\x00\x00")
            return line.recv(4) == b"AMQP"


@contextmanager
def rabbitmq(directory: Path) -> Iterator[RabbitProcess]:
    """A server that runs; Erlang takes its time on a busy machine."""
    with RabbitProcess(directory) as server:
        server.start(timeout_s=240)
        yield server
