"""Debian's redis-server on a free port of the loopback; what it holds survives a restart."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.outside import needs
from tests.support.processes import HOST, ServerProcess, free_port


class RedisProcess(ServerProcess):
    """One server, with every write in its log."""

    def __init__(self, directory: Path, *settings: str) -> None:
        program = needs("redis")
        directory.mkdir(parents=True, exist_ok=True)
        port = free_port()
        words = [
            *["--port", str(port), "--bind", HOST, "--dir", str(directory), "--save", ""],
            *["--appendonly", "yes", "--appendfsync", "always", "--daemonize", "no"],
        ]
        command = [str(program), *words, *settings]
        super().__init__(command, port=port, log_path=directory / "redis.log")

    @property
    def uri(self) -> str:
        return f"redis://{self.address}"

    def answers(self) -> bool:
        """Whether it answers PING, if only to say that we must log in."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"redis-server ended:\n{self.log_end}")
        with socket.create_connection((HOST, self.port), 5) as line:
            line.sendall(b"PING\r\n")
            return line.recv(64).startswith((b"+PONG", b"-NOAUTH"))


@contextmanager
def redis_server(directory: Path, *settings: str) -> Iterator[RedisProcess]:
    """A server that runs."""
    with RedisProcess(directory, *settings) as server:
        server.start()
        yield server
