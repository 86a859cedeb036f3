"""The line between a worker and its tasks, over a real socket."""

import socket
from collections.abc import Iterator

import pytest
from tests.support.waiting import eventually

from penstock.connect.running.channel import WorkerChannel
from penstock.connect.running.control import ControlServer, TaskRun
from penstock.connect.running.spec import TaskSpec
from penstock.connect.settings import WorkerSettings
from penstock.connect.store.config_records import LogEntry
from penstock.errors import PenstockError

RUN = TaskRun("c", 0, 5)
KEPT = [LogEntry(b"k", b"v"), LogEntry(b"gone", None)]


class Watcher:
    def __init__(self) -> None:
        self.heard: list[tuple[str, TaskRun, object]] = []

    def on_state(self, run: TaskRun, state: str) -> None:
        self.heard.append(("state", run, state))

    def on_failure(self, run: TaskRun, trace: str) -> None:
        self.heard.append(("failed", run, trace))

    def on_topic(self, run: TaskRun, topic: str) -> None:
        self.heard.append(("topic", run, topic))

    def on_reconfigure(self, run: TaskRun) -> None:
        self.heard.append(("reconfigure", run, None))

    def keep_offsets(self, run: TaskRun, records: list[LogEntry]) -> None:
        if not records:
            raise PenstockError("nothing to keep")
        self.heard.append(("offsets", run, records))


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture
def server(watcher: Watcher) -> Iterator[ControlServer]:
    made = ControlServer("127.0.0.1", "secret")
    made.watch(watcher)
    yield made
    made.close()


def spec(server: ControlServer, token: str = "secret") -> TaskSpec:
    return TaskSpec(
        connector="c",
        task=0,
        run=5,
        is_source=True,
        connector_config={},
        task_config={},
        settings=WorkerSettings(given={}, listeners=(), client={}),
        control=server.address,
        token=token,
    )


def test_what_a_task_tells_is_heard_in_order(server: ControlServer, watcher: Watcher) -> None:
    channel = WorkerChannel(spec(server))
    channel.tell_state("RUNNING")
    channel.tell_topic("t")
    channel.tell_topic("t")
    channel.keep_offsets(KEPT)
    channel.tell_failure("trace")
    eventually(lambda: len(watcher.heard) == 4)
    assert watcher.heard == [
        ("state", RUN, "RUNNING"),
        ("topic", RUN, "t"),
        ("offsets", RUN, KEPT),
        ("failed", RUN, "trace"),
    ]
    channel.close()


def test_offsets_that_are_refused_are_told_to_the_task(server: ControlServer) -> None:
    channel = WorkerChannel(spec(server))
    with pytest.raises(PenstockError, match="nothing to keep"):
        channel.keep_offsets([])
    channel.close()


def test_commands_reach_the_task(server: ControlServer) -> None:
    channel = WorkerChannel(spec(server))
    eventually(lambda: server.command(RUN, "pause"))
    eventually(channel.paused.is_set)
    assert server.command(RUN, "resume")
    eventually(lambda: not channel.paused.is_set())
    assert server.command(RUN, "stop")
    eventually(channel.stopping.is_set)
    assert not server.command(RUN._replace(run=4), "stop"), "another run has no line"
    channel.close()


def test_a_task_whose_worker_is_gone_stops(server: ControlServer) -> None:
    channel = WorkerChannel(spec(server))
    eventually(lambda: server.pid(RUN))
    server.close()
    eventually(channel.stopping.is_set)
    channel.close()


@pytest.mark.parametrize("line", [b"{}\n", b"nonsense\n", b'{"hello":"wrong"}\n', b""])
def test_a_stranger_is_hung_up_on(server: ControlServer, watcher: Watcher, line: bytes) -> None:
    with socket.create_connection(server.address, 30) as stranger:
        stranger.sendall(line)
        stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(1) == b""
    assert watcher.heard == []
