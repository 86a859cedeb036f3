"""A record that was put aside, as a dead letter: Connect's headers, in the one contract of all.

Key, value and headers are as they were in the topic. With
`errors.deadletterqueue.context.headers.enable` the headers of `schemas/dead_letters.py` follow, and
three that Connect alone has: the task, the class of the step, and the stack trace.
"""

import traceback
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.connect.errors.kinds import ConnectError
from penstock.connect.errors.policy import ErrorPolicy
from penstock.schemas.dead_letters import CONNECT, Cause, FailureStage, Header

TASK = f"{CONNECT}task.id"
STEP_CLASS = f"{CONNECT}class.name"
STACK_TRACE = f"{CONNECT}exception.stacktrace"
_TRACE_CHARACTERS_MAX = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOrigin:
    """Where a record came from: a sink's, of a topic. None: a source's, which is of none yet."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()

    def __str__(self) -> str:
        return Cause(topic=self.topic, partition=self.partition, offset=self.offset).origin


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStep:
    """What failed, with which record."""

    stage: FailureStage
    step_class: str
    error: Exception
    origin: RecordOrigin
    connector: str
    task: int
    attempts: int = 1

    def sentence(self, *, with_origin: bool) -> str:
        """What a log says about it."""
        where = f" Record: {self.origin}." if with_origin and self.origin.topic else ""
        return (
            f"Error encountered in task {self.connector}-{self.task}. Executing stage "
            f"'{self.stage}' with class '{self.step_class}' after {self.attempts} attempt(s): "
            f"{self.error}.{where}"
        )

    def cause(self) -> Cause:
        """What the platform's contract says about it."""
        origin = self.origin
        return Cause(
            topic=origin.topic,
            partition=origin.partition,
            offset=origin.offset,
            timestamp_ms=origin.timestamp_ms,
            pipeline=self.connector,
            stage=self.stage.value,
            error_class=_class_of(self.error),
            message=str(self.error),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PutAside:
    """A record for the topic of dead letters."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp_ms: int | None


def dead_letter(policy: ErrorPolicy, failed: FailedStep) -> PutAside | None:
    """The letter of a record that failed; None: none are wanted, or it is a source's record."""
    origin = failed.origin
    if policy.dead_letter_topic is None or origin.topic is None:
        return None
    added = context_headers(failed) if policy.with_context else ()
    return PutAside(
        topic=policy.dead_letter_topic,
        key=origin.key,
        value=origin.value,
        headers=(*origin.headers, *added),
        timestamp_ms=origin.timestamp_ms,
    )


def context_headers(failed: FailedStep) -> Iterable[Header]:
    """What the headers say about a failure."""
    trace = "".join(traceback.format_exception(failed.error))[-_TRACE_CHARACTERS_MAX:]
    return (
        *failed.cause().headers(),
        (TASK, str(failed.task).encode()),
        (STEP_CLASS, failed.step_class.encode()),
        (STACK_TRACE, trace.encode(errors="replace")),
    )


def _class_of(error: Exception) -> str:
    """Connect's name of an error where it has one, or Python's."""
    if isinstance(error, ConnectError):
        return error.java_name
    return f"{type(error).__module__}.{type(error).__qualname__}"
