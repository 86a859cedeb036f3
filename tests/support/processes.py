"""A server as a real process: started, watched, stopped, killed, and never left behind.

It knows ports, signals and /proc, and that a Kafka server is ready when it answers ApiVersions.
What is being started (Penstock, Apache Kafka) is the business of the modules beside it.
"""

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count, islice, takewhile
from pathlib import Path
from typing import Self

import psutil
from tests.support.waiting import eventually
from tests.support.wire import RawConnection, WireError

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
BLOCK_SIZE = 500  # Ports that one process of tests gives out.
PATIENCE_S = 120.0  # What starts or stops in a second needs a minute where all else is busy too.


def free_port() -> int:
    """A port nobody listens on, below the range the kernel takes outgoing ports from.

    A port of that range could be taken by any client's connection while a server is down between
    two starts, even by a client that then connects to itself. A server binds its port a while after
    it was found free; until then nobody else is given it, because each process of tests has a block
    of ports of its own.
    """
    _, ports = _own_block(os.getpid())
    for port in islice(ports, BLOCK_SIZE):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((HOST, port))
                return port
    raise AssertionError("no free port found")


@cache
def _own_block(pid: int) -> tuple[socket.socket, Iterator[int]]:
    """The ports that the process `pid` gives out, round and round from anywhere among them.

    A datagram socket on the first of them, which keeps no server from it, says that they are taken:
    the kernel closes it with the process, however that ends.
    """
    firsts = list(range(15_000, 32_000, BLOCK_SIZE))
    random.SystemRandom().shuffle(firsts)
    for first in firsts:
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind((HOST, first))
        except OSError:
            claim.close()
            continue
        begin = random.SystemRandom().randrange(BLOCK_SIZE)
        return claim, (first + (begin + step) % BLOCK_SIZE for step in count())
    raise AssertionError("every block of ports is taken by some process of tests")


class ServerProcess:
    """One server process with its log; `command` may be started many times."""

    def __init__(
        self, command: Sequence[str], *, port: int, log_path: Path, cwd: Path | None = None
    ) -> None:
        self.command = list(command)
        self.port = port
        self.log_path = log_path
        self.cwd = cwd or ROOT
        self.process: subprocess.Popen[bytes] | None = None
        self.started_s = 0.0

    @property
    def address(self) -> str:
        """`host:port`, as clients want it."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id while the server runs."""
        assert self.process is not None, "the server was not started"
        return self.process.pid

    @property
    def log(self) -> str:
        """Everything the server has printed, over all its starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def log_end(self) -> str:
        """The last of the log for a message, without the settings printed at each start."""
        lines = [line for line in self.log.splitlines() if not line.startswith("\t")]
        return "\n".join(lines)[-4000:]

    def tracebacks(self) -> dict[str, str]:
        """Each error of the server's own that its log shows, once, by its last line."""
        found: dict[str, str] = {}
        # A chained exception belongs to the one it was raised from.
        for block in re.split(r"(?<!exception:\n\n)Traceback \(most recent", self.log)[1:]:
            lines = list(takewhile(lambda line: not line.startswith("[20"), block.splitlines()))
            text = "\n".join(lines).strip()
            found.setdefault(text.rpartition("\n")[2], text)
        return found

    def launch(self) -> None:
        """Start the process and return at once."""
        assert self.process is None, "the server runs already"
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with self.log_path.open("ab") as log:
            self.started_s = time.perf_counter()
            self.process = subprocess.Popen(
                self.command,
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    def start(self, *, timeout_s: float = PATIENCE_S) -> None:
        """Start, and wait until ApiVersions is answered."""
        self.launch()
        try:
            self.wait_until_ready(timeout_s=timeout_s)
        except BaseException:
            self.kill()
            raise

    def wait_until_ready(self, *, timeout_s: float = PATIENCE_S, every_s: float = 0.005) -> float:
        """Seconds from the start of the process to the first answered request."""
        eventually(self.answers, timeout_s=timeout_s, every_s=every_s, what="an answer")
        return time.perf_counter() - self.started_s

    def answers(self) -> bool:
        """Whether a new connection gets its ApiVersions answered."""
        assert self.process is not None
        if self.process.poll() is not None:
            code = self.process.returncode
            raise RuntimeError(f"the server ended with code {code}:\n{self.log_end}")
        try:
            with RawConnection(self.port, timeout_s=20) as connection:
                return connection.api_versions().error_code == 0
        except (OSError, WireError):
            return False

    def wait(self, *, timeout_s: float = PATIENCE_S) -> int:
        """The exit code, once the process has ended by itself or by a signal sent before."""
        assert self.process is not None
        code = self.process.wait(timeout_s)
        self.process = None
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal to the server process."""
        os.kill(self.pid, number)

    def stop(self, *, timeout_s: float = PATIENCE_S) -> int:
        """SIGTERM, and the exit code; AssertionError when the server had to be killed."""
        self.send_signal(signal.SIGTERM)
        pid = self.pid
        try:
            code = self.wait(timeout_s=timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"no stop within {timeout_s:g} s:\n{self.log_end}") from None
        assert_group_is_gone(pid)
        return code

    def kill(self) -> None:
        """SIGKILL to the server and whatever it started."""
        if self.process is None:
            return
        pid = self.pid
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        self.process.wait()
        self.process = None
        assert_group_is_gone(pid)

    def restart(self, *, timeout_s: float = PATIENCE_S) -> None:
        """Stop in good order and start again on the same port and data."""
        self.stop()
        self.start(timeout_s=timeout_s)

    def rss_bytes(self) -> int:
        """Resident memory of the server now."""
        return _status_bytes(self.pid, "VmRSS")

    def rss_peak_bytes(self) -> int:
        """The most resident memory the server ever had."""
        return _status_bytes(self.pid, "VmHWM")

    def cpu_seconds(self) -> float:
        """Processor time, user and system, that the server has used."""
        return cpu_seconds(self.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.kill()
        if kind is None:  # Otherwise the test has failed already, and says why.
            assert "was never awaited" not in self.log, self.log_end


def assert_group_is_gone(group: int) -> None:
    """Nothing of the process group is left running."""

    def gone() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    eventually(gone, timeout_s=60, what=f"the end of all processes of group {group}")


def cpu_seconds(pid: int) -> float:
    """Processor time, user and system, that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _status_bytes(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"/proc/{pid}/status has no {name}")


def named_below(pid: int, name: str) -> list[psutil.Process]:
    """The processes of a name below another; those that end meanwhile are not among them."""
    found = []
    for one in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if one.name() == name:
                found.append(one)
    return found


def python() -> str:
    """The interpreter the tests run on, which has the package installed."""
    return sys.executable
