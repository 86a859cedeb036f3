"""Steps that fail: tried again, skipped and reported, or the end of the task."""

import logging
from collections.abc import Callable

import pytest

from penstock.connect.errors.dead_letters import FailedStep, RecordOrigin
from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError
from penstock.connect.errors.policy import ErrorPolicy
from penstock.connect.errors.tolerating import StepDone, TolerantRun
from penstock.schemas.dead_letters import FailureStage

ORIGIN = RecordOrigin(topic="orders", partition=1, offset=7, value=b"secret")


class Scene:
    """A run with a clock that only pauses move."""

    def __init__(self, policy: ErrorPolicy) -> None:
        self.now_ms = 0
        self.reported: list[FailedStep] = []
        self.tolerant = TolerantRun(
            policy=policy,
            connector="sink",
            task=2,
            now_ms=lambda: self.now_ms,
            pause_ms=self._pause,
            report=self.reported.append,
        )

    def _pause(self, pause_ms: int) -> None:
        self.now_ms += pause_ms

    def run(self, call: Callable[[], object]) -> StepDone[object] | None:
        return self.tolerant.run(FailureStage.TRANSFORMATION, "Cast", call, ORIGIN)


def failing(error: Exception, times: int) -> Callable[[], object]:
    left = [error] * times

    def call() -> object:
        if left:
            raise left.pop()
        return "made"

    return call


def test_what_succeeds_is_handed_on_even_if_it_is_none() -> None:
    assert Scene(ErrorPolicy()).run(lambda: None) == StepDone(None)


def test_without_tolerance_the_task_ends_and_names_the_record() -> None:
    with pytest.raises(ConnectError, match=r"Tolerance exceeded.*orders-1@7") as raised:
        Scene(ErrorPolicy()).run(failing(DataError("bad"), 1))
    assert isinstance(raised.value.__cause__, DataError)


def test_a_tolerated_record_is_reported_once() -> None:
    scene = Scene(ErrorPolicy(tolerates=True))
    assert scene.run(failing(DataError("bad"), 1)) is None
    assert [(one.stage, str(one.error), one.task) for one in scene.reported] == [
        (FailureStage.TRANSFORMATION, "bad", 2)
    ]
    assert scene.tolerant.counts.skipped == 1


def test_what_passes_by_itself_is_tried_again() -> None:
    scene = Scene(ErrorPolicy(retry_timeout_ms=10_000))
    assert scene.run(failing(RetriableConnectError("later"), 3)) == StepDone("made")
    assert scene.now_ms == 300 + 600 + 1_200
    assert scene.tolerant.counts.retries == 3


def test_retries_end_with_their_time() -> None:
    scene = Scene(ErrorPolicy(retry_timeout_ms=1_000, tolerates=True))
    assert scene.run(failing(RetriableConnectError("later"), 100)) is None
    assert scene.now_ms == 1_000
    assert scene.reported[0].attempts == 4


def test_an_error_that_is_no_records_fault_ends_the_task_though_all_is_tolerated() -> None:
    with pytest.raises(ConnectError):
        Scene(ErrorPolicy(tolerates=True)).run(failing(OSError("disk"), 1))


def test_logs_name_the_record_only_where_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    for shows in (False, True):
        caplog.clear()
        with caplog.at_level(logging.ERROR, "penstock.connect"):
            policy = ErrorPolicy(tolerates=True, logs=True, logs_messages=shows)
            Scene(policy).run(failing(DataError("bad"), 1))
        assert ("orders-1@7" in caplog.text) is shows
        assert "secret" not in caplog.text
