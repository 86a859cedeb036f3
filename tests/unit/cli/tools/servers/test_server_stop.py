"""kafka-server-stop: which processes are brokers, and which of them is meant."""

import signal
from pathlib import Path

import pytest

from penstock.cli import running
from penstock.cli.tools.servers import server_stop
from penstock.cli.tools.servers.server_stop import broker_id, is_broker, without_supervised
from penstock.errors import CommandError

PYTHON = "/usr/bin/python3"
OVERRIDE = ["--override", "broker.id=7"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([PYTHON, "-m", "penstock.cli.main", "server", *OVERRIDE], True),
        ([PYTHON, "/srv/.venv/bin/penstock", "server"], True),
        (["/srv/.venv/bin/penstock", "server"], True),
        ([PYTHON, "/opt/bin/kafka-server-start.sh", "server.properties"], True),
        ([PYTHON, "/opt/bin/penstock", "server-stop"], False),
        ([PYTHON, "/opt/bin/penstock", "topics", "--topic", "server"], False),
        (["vim", "src/penstock/broker/server.py"], False),
        (["grep", "-r", "kafka-console", "penstock"], False),
        ([], False),
    ],
)
def test_a_broker_is_known_by_its_command_line(words: list[str], expected: bool) -> None:
    assert is_broker(words) is expected


def test_its_id_is_in_its_overrides_or_its_file(tmp_path: Path) -> None:
    (tmp_path / "server-1.properties").write_text("broker.id=1\n")
    command = [PYTHON, "/opt/bin/kafka-server-start"]
    assert broker_id([*command], tmp_path) == "0"
    assert broker_id([*command, "server-1.properties"], tmp_path) == "1"
    assert broker_id([*command, "server-1.properties", *OVERRIDE], tmp_path) == "7"
    assert broker_id([*command, "--override=node.id=9"], tmp_path) == "9"
    assert broker_id([*command, "gone.properties"], tmp_path) == "0"


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two brokers and another process, and the ids that were asked to stop."""
    killed: list[int] = []
    processes = [
        (11, [PYTHON, "-m", "penstock.cli.main", "server"]),
        (12, [PYTHON, "-m", "penstock.cli.main", "server", *OVERRIDE]),
        (13, ["bash"]),
    ]

    def kill(pid: int, number: int) -> None:
        assert number == signal.SIGTERM
        killed.append(pid)

    monkeypatch.setattr(server_stop, "processes", lambda _: iter(processes))
    monkeypatch.setattr(running.os, "kill", kill)
    return killed


def test_all_brokers_are_stopped(stopped: list[int]) -> None:
    assert server_stop.main([]) == 0
    assert stopped == [11, 12]


def test_one_broker_can_be_meant(stopped: list[int]) -> None:
    assert server_stop.main(["--node-id", "7"]) == 0
    assert stopped == [12]


def test_no_broker_is_told(stopped: list[int]) -> None:
    with pytest.raises(CommandError, match="No kafka server to stop"):
        server_stop.main(["--node-id", "99"])
    assert stopped == []


def test_brokers_of_a_supervisor_are_left_to_it() -> None:
    parents = {10: 1, 11: 10, 12: 10, 20: 1}
    assert without_supervised([10, 11, 12, 20], parents.__getitem__) == [10, 20]
    assert without_supervised([11, 12], parents.__getitem__) == [11, 12]
