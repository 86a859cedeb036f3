"""`penstock up` comes to its end in every way there is, and leaves nothing behind."""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.platform import UpProcess, penstock
from tests.support.processes import HOST
from tests.support.waiting import eventually

from penstock.platform.child import is_alive

Stage = Callable[[UpProcess], object]


def has_begun(up: UpProcess) -> object:
    return True


def has_lock(up: UpProcess) -> object:
    return up.directory.is_held()


def has_broker(up: UpProcess) -> object:
    state = up.directory.state()
    return state is not None and len(state.identities) >= 1


def has_services(up: UpProcess) -> object:
    state = up.directory.state()
    return state is not None and len(state.identities) == 2


def has_a_broker_that_answers(up: UpProcess) -> object:
    state = up.directory.state()
    return state is not None and state.processes and state.processes[0].is_ready


def is_up(up: UpProcess) -> object:
    return up.answers()


@pytest.mark.parametrize(
    ("stage", "number"),
    [
        (has_begun, signal.SIGTERM),
        (has_lock, signal.SIGINT),
        (has_broker, signal.SIGTERM),
        (has_services, signal.SIGINT),
        (has_a_broker_that_answers, signal.SIGTERM),
        (is_up, signal.SIGINT),
    ],
)
def test_a_signal_at_any_stage_leaves_nothing(tmp_path: Path, stage: Stage, number: int) -> None:
    with UpProcess(tmp_path) as up:
        up.launch()
        eventually(lambda: stage(up), timeout_s=120, every_s=0.001, what=stage.__name__)
        up.send_signal(number)
        code = up.wait()
        if stage is not has_begun:  # Before Python is there a signal just ends it.
            assert code == 0, up.log
        assert "Traceback" not in up.log
        up.assert_nothing_is_left()


def test_a_second_signal_is_immediate(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as up:
        up.start()
        broker = up.process_state("broker").identity
        services = up.process_state("services").identity
        assert broker is not None
        assert services is not None
        os.kill(broker.pid, signal.SIGSTOP)  # It cannot stop in good order any more.
        up.send_signal(signal.SIGTERM)
        eventually(lambda: not is_alive(services), what="the end of who was started last")
        assert up.process is not None
        assert up.process.poll() is None
        up.send_signal(signal.SIGTERM)
        assert up.wait() == 130
        up.assert_nothing_is_left()


def test_after_a_killed_supervisor_the_next_one_starts(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as up:
        up.start()
        before = up.state()
        os.kill(up.pid, signal.SIGKILL)
        up.wait()
        up.start()
        after = up.state()
        assert not {*before.identities} & {*after.identities}
        assert [one for one in before.identities if is_alive(one)] == []
        assert up.stop() == 0
        up.assert_nothing_is_left()


def test_up_in_the_background_and_down(tmp_path: Path) -> None:
    up = UpProcess(tmp_path)
    up.file.write_text("".join(f"{name}={value}\n" for name, value in up.settings.items()))
    started = penstock("up", "-d", str(up.file))
    try:
        assert started.returncode == 0, started.stdout + started.stderr
        assert "Everything answers" in started.stdout
        assert up.get("registry", "/subjects") == []
        up.state()
    finally:
        down = penstock("down", str(up.file))
    assert (down.returncode, down.stdout) == (0, "Stopped.\n")
    up.assert_nothing_is_left()
    again = penstock("down", str(up.file))
    assert (again.returncode, again.stderr) == (1, f"Nothing runs in {up.directory.path}.\n")


@pytest.mark.parametrize("service", ["broker", "registry", "rest"])
def test_a_taken_port_is_told_before_anything_starts(tmp_path: Path, service: str) -> None:
    up = UpProcess(tmp_path)
    with socket.create_server((HOST, up.ports[service])):
        up.launch()
        assert up.wait() == 1
    assert f"{service} cannot listen on {HOST}:{up.ports[service]}" in up.log
    assert up.log.count("\n") == 1
    assert not (up.directory.path / "logs").exists()
    assert not (up.directory.path / "data").exists()
    up.assert_nothing_is_left()


def test_a_process_that_refuses_to_start_ends_everything_with_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    up = UpProcess(tmp_path, {"log.dirs": str(tmp_path / "file" / "data")})
    up.launch()
    assert up.wait() == 1
    assert "broker ended with code 1 at its start" in up.log
    assert str(tmp_path / "file" / "data") in up.log
    assert "Traceback" not in up.log
    up.assert_nothing_is_left()
