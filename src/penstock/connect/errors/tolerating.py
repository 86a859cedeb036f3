"""Runs the steps of a record: retries what may pass, tolerates what the settings allow.

    outcome = tolerant.run(FailureStage.VALUE_CONVERTER, converter_class, call, record)

What is tolerated is counted, logged, and reported once to whoever writes dead letters. Time and the
pause between two tries come from outside.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from penstock.connect.errors.dead_letters import FailedStep, RecordOrigin
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.errors.policy import ErrorPolicy, is_retriable, is_tolerable
from penstock.schemas.dead_letters import FailureStage

T = TypeVar("T")
log = logging.getLogger("penstock.connect")


@dataclass(frozen=True, slots=True)
class StepDone(Generic[T]):
    """What a step gave; None is a result of its own."""

    value: T


@dataclass(slots=True)
class ErrorCounts:
    """What a task's metrics tell."""

    failures: int = 0
    retries: int = 0
    skipped: int = 0
    logged: int = 0


@dataclass(slots=True, kw_only=True)
class TolerantRun:
    """The steps of one task."""

    policy: ErrorPolicy
    connector: str
    task: int
    now_ms: Callable[[], int]
    pause_ms: Callable[[int], None]  # May return early when the task is to stop.
    report: Callable[[FailedStep], None]  # Takes a record that was put aside.
    is_stopping: Callable[[], bool] = lambda: False
    counts: ErrorCounts = field(default_factory=ErrorCounts)

    def run(
        self,
        stage: FailureStage,
        step_class: str,
        call: Callable[[], T],
        origin: RecordOrigin,
    ) -> StepDone[T] | None:
        """What the call gives; None: it failed, the failure is tolerated, and was reported."""
        began_ms, attempt = self.now_ms(), 0
        while True:
            try:
                return StepDone(call())
            except Exception as error:  # noqa: BLE001 A plug-in may raise whatever it likes.
                attempt += 1
                self.counts.failures += 1
                if not self._waits(error, attempt, began_ms):
                    self._settle(
                        FailedStep(
                            stage=stage,
                            step_class=step_class,
                            error=error,
                            origin=origin,
                            connector=self.connector,
                            task=self.task,
                            attempts=attempt,
                        )
                    )
                    return None

    def _waits(self, error: Exception, attempt: int, began_ms: int) -> bool:
        """Wait for the next try; False: there is none."""
        if not is_retriable(error) or self.is_stopping():
            return False
        pause = self.policy.pause_ms(attempt, began_ms=began_ms, now_ms=self.now_ms())
        if pause is None:
            return False
        self.counts.retries += 1
        self.pause_ms(pause)
        return not self.is_stopping()

    def _settle(self, failed: FailedStep) -> None:
        """Skip the record, or end the task."""
        tolerable = is_tolerable(failed.stage, failed.error) or is_retriable(failed.error)
        if not self.policy.tolerates or not tolerable:
            self._log(failed)
            raise ConnectError(
                f"Tolerance exceeded in error handler: {failed.sentence(with_origin=True)}"
            ) from failed.error
        if self.policy.logs:
            self._log(failed)
        self.counts.skipped += 1
        self.report(failed)

    def _log(self, failed: FailedStep) -> None:
        self.counts.logged += 1
        log.error("%s", failed.sentence(with_origin=self.policy.logs_messages))
