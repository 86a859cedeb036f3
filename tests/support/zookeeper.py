"""The real ZooKeeper as processes of the tests: one server, or an ensemble of three.

The command line is the product's own. Each server has its data in a directory of the test and may
be stopped, killed and started again on the same port. Its ticks are short, so that a session may
last as little as 0.4 s and as much as 40 s.
"""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.processes import HOST, assert_group_is_gone, free_port
from tests.support.waiting import eventually

from penstock.meta.zookeeper.server import prepare
from penstock.meta.zookeeper.store import ZkStore

TICK_MS = 200
SETTINGS = {
    "tickTime": str(TICK_MS),
    "maxSessionTimeout": "400000",
    "maxClientCnxns": "0",
    "clientPortAddress": HOST,
    "4lw.commands.whitelist": "*",
    # kill -9 leaves the page cache; a test that cuts the power sets this to yes.
    "forceSync": "no",
}


class ZooKeeperProcess:
    """One server; `start` returns when it serves. Alone, or a member of an ensemble."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
        my_id: int | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.port = port or free_port()
        self.my_id = my_id
        self.log_path = directory / "zookeeper.out"
        self.settings = {
            **SETTINGS,
            "dataDir": str(directory / "data"),
            "clientPort": str(self.port),
            **(settings or {}),
        }
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def connect(self) -> str:
        """What zookeeper.connect takes; a chroot may be put behind it."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the server was not started"
        return self.process.pid

    @property
    def log(self) -> str:
        """Everything the server has printed, over all its starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def launch(self) -> None:
        """Start the process and return at once."""
        assert self.process is None, "the server runs already"
        command = prepare(self.settings, my_id=self.my_id).command
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def start(self, *, timeout_s: float = 180.0) -> None:
        """Start, and wait until it serves clients."""
        self.launch()
        try:
            self.wait_until_ready(timeout_s=timeout_s)
        except BaseException:
            self.kill()
            raise

    def wait_until_ready(self, *, timeout_s: float = 180.0) -> None:
        eventually(self.serves, timeout_s=timeout_s, what=f"a ZooKeeper at {self.connect}")

    def serves(self) -> bool:
        """Whether it answers as a server alone, as leader or as follower."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"ZooKeeper ended with {self.process.returncode}:\n{self.log}")
        return b"Mode: " in self.ask(b"srvr")

    def ask(self, word: bytes) -> bytes:
        """The answer to one of ZooKeeper's four letter words; empty: nobody is there."""
        try:
            with socket.create_connection((HOST, self.port), timeout=10) as connection:
                connection.sendall(word)
                answer = b""
                while chunk := connection.recv(65536):
                    answer += chunk
                return answer
        except OSError:
            return b""

    @property
    def mode(self) -> str:
        """standalone, leader or follower; empty: it does not serve."""
        lines = self.ask(b"srvr").decode().splitlines()
        return next((line.split()[1] for line in lines if line.startswith("Mode: ")), "")

    def stop(self) -> None:
        """SIGTERM, and wait for the end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL; a server that does not run is left alone."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP: it holds its connections and answers nobody."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, number: int) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            os.kill(self.pid, number)
            os.kill(self.pid, signal.SIGCONT)
        self.process.wait(120)
        assert_group_is_gone(self.pid)
        self.process = None

    def __enter__(self) -> Self:
        if self.process is None:
            self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


class ZooKeeperEnsemble:
    """Several servers that keep one tree; `servers` may be stopped and started one by one."""

    def __init__(
        self, directory: Path, count: int = 3, settings: Mapping[str, str] | None = None
    ) -> None:
        lines = {f"server.{n}": f"{HOST}:{free_port()}:{free_port()}" for n in range(1, count + 1)}
        shared = {"initLimit": "50", "syncLimit": "25", **lines, **(settings or {})}
        self.servers = [
            ZooKeeperProcess(directory / f"zookeeper-{n}", shared, my_id=n)
            for n in range(1, count + 1)
        ]

    @property
    def connect(self) -> str:
        return ",".join(server.connect for server in self.servers)

    def start(self, *, timeout_s: float = 180.0) -> None:
        """Start all of them, and wait until each serves."""
        for server in self.servers:
            server.launch()
        try:
            for server in self.servers:
                server.wait_until_ready(timeout_s=timeout_s)
        except BaseException:
            self.kill()
            raise

    @property
    def leader(self) -> ZooKeeperProcess:
        """The server that leads now."""
        found = eventually(self._leader, timeout_s=120, what="a leader of the ensemble")
        assert found is not None
        return found

    def _leader(self) -> ZooKeeperProcess | None:
        running = (server for server in self.servers if server.process is not None)
        return next((server for server in running if server.mode == "leader"), None)

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def kill(self) -> None:
        for server in self.servers:
            server.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


class ZkStores:
    """Opens sessions with a real ZooKeeper, below a node of the test's own."""

    def __init__(self, zookeeper: ZooKeeperProcess | ZooKeeperEnsemble, chroot: str) -> None:
        self.zookeeper = zookeeper
        self.connect = zookeeper.connect + chroot
        self._sessions: list[ZkStore] = []

    async def open(
        self,
        *,
        session_timeout_ms: int = 10_000,
        connection_timeout_ms: int | None = None,
        in_flight_max: int = 100,
    ) -> ZkStore:
        """A session like those of other processes."""
        store = await ZkStore.open(
            self.connect,
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=connection_timeout_ms,
            in_flight_max=in_flight_max,
        )
        self._sessions.append(store)
        return store

    async def aclose(self) -> None:
        await asyncio.gather(*(store.close() for store in self._sessions))
