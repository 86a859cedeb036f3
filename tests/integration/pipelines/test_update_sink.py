"""Update mode into a topic: a batch that is replayed, and killed again as it is, is there once."""

import signal
import subprocess
from pathlib import Path

import pytest
from tests.integration.pipelines.update_process import INPUT, OUTPUT
from tests.support.broker import BrokerProcess
from tests.support.pipelines import records_of, send
from tests.support.processes import ROOT, python

pytestmark = pytest.mark.timeout(900)


def run(broker: BrokerProcess, directory: Path, step: str) -> None:
    """One life of the driver."""
    command = [python(), "-m", "tests.integration.pipelines.update_process"]
    done = subprocess.run(
        [*command, broker.address, str(directory), step],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    wanted = 0 if step == "never" else -signal.SIGKILL
    assert done.returncode == wanted, done.stdout + done.stderr


def written(broker: BrokerProcess) -> list[tuple[bytes | None, bytes | None]]:
    return sorted(records_of(broker.address, OUTPUT), key=str)


@pytest.mark.long
def test_a_replay_that_is_killed_too_doubles_nothing(broker: BrokerProcess, tmp_path: Path) -> None:
    send(broker.address, INPUT, [("a", "1"), ("b", "2"), ("a", "3")])
    run(broker, tmp_path, "after")  # Written, but Spark does not know.
    first = [(b"a", b"4"), (b"b", b"2")]
    assert written(broker) == first
    run(broker, tmp_path, "before")  # In the replay, with nothing done yet.
    run(broker, tmp_path, "after")  # In the replay, which has found its batch written.
    assert written(broker) == first
    send(broker.address, INPUT, [("b", "5")])
    run(broker, tmp_path, "never")
    assert written(broker) == sorted([*first, (b"b", b"7")], key=str)


@pytest.mark.long
def test_a_batch_that_was_killed_before_its_write_is_written_by_the_replay(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    send(broker.address, INPUT, [("a", "1"), ("b", "2")])
    run(broker, tmp_path, "before")
    run(broker, tmp_path, "after")
    run(broker, tmp_path, "never")
    assert written(broker) == [(b"a", b"1"), (b"b", b"2")]
