"""What `errors.*` of a connector says: what is retried, tolerated, told and put aside.

Decisions alone; `errors/tolerating.py` acts on them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.connect.errors.kinds import ConnectError, RetriableConnectError
from penstock.connect.plugins.config_def import (
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
    Width,
)
from penstock.connect.plugins.validators import OneOfWords
from penstock.schemas.dead_letters import FailureStage
from penstock.schemas.errors import FormatError

_GROUP = "Error Handling"
_FIRST_DELAY_MS = 300
_OF_RECORDS = (
    ConnectError,
    FormatError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
# Where a record that fails may be skipped. A source's poll and a sink's put fail the task.
TOLERATED = frozenset(
    {
        FailureStage.KEY_CONVERTER,
        FailureStage.VALUE_CONVERTER,
        FailureStage.HEADER_CONVERTER,
        FailureStage.TRANSFORMATION,
    }
)


def _entry(
    at: int, name: str, kind: ConfigType, default: Any, doc: str, shown: str, **more: Any
) -> ConfigEntry:
    return ConfigEntry(
        f"errors.{name}",
        kind,
        default,
        Importance.MEDIUM,
        doc,
        group=_GROUP,
        order=at,
        width=Width.SHORT if kind is ConfigType.STRING else Width.MEDIUM,
        display_name=shown,
        **more,
    )


ERROR_SETTINGS = ConfigDef(
    _entry(
        1,
        "retry.timeout",
        ConfigType.LONG,
        0,
        "For how many milliseconds what failed is tried again; 0: never, -1: without end.",
        "Retry Timeout for Errors",
    ),
    _entry(
        2,
        "retry.delay.max.ms",
        ConfigType.LONG,
        60_000,
        "The longest pause between two tries, in milliseconds.",
        "Maximum Delay Between Retries for Errors",
    ),
    _entry(
        3,
        "tolerance",
        ConfigType.STRING,
        "none",
        "none: a record that fails ends the task; all: it is skipped.",
        "Error Tolerance",
        validator=OneOfWords(("none", "all")),
    ),
    _entry(
        4,
        "log.enable",
        ConfigType.BOOLEAN,
        False,
        "Whether each tolerated error is logged too; others always are.",
        "Log Errors",
    ),
    _entry(
        5,
        "log.include.messages",
        ConfigType.BOOLEAN,
        False,
        "Whether the log names topic, partition, offset and time of the record that failed.",
        "Log Error Details",
    ),
)
DEAD_LETTER_SETTINGS = ConfigDef(
    _entry(
        6,
        "deadletterqueue.topic.name",
        ConfigType.STRING,
        "",
        "The topic for records of a sink that failed; empty: they are dropped.",
        "Dead Letter Queue Topic Name",
    ),
    _entry(
        7,
        "deadletterqueue.topic.replication.factor",
        ConfigType.SHORT,
        3,
        "How many replicas that topic gets when it is made.",
        "Dead Letter Queue Topic Replication Factor",
    ),
    _entry(
        8,
        "deadletterqueue.context.headers.enable",
        ConfigType.BOOLEAN,
        False,
        "Whether dead letters have headers that say what went wrong.",
        "Enable Error Context Headers",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPolicy:
    """The settings of one connector."""

    retry_timeout_ms: int = 0
    retry_delay_max_ms: int = 60_000
    tolerates: bool = False
    logs: bool = False
    logs_messages: bool = False
    dead_letter_topic: str | None = None  # None: what is tolerated is dropped.
    dead_letter_replicas: int = 3
    with_context: bool = False

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "ErrorPolicy":
        """What a connector's configuration says."""
        told = (ERROR_SETTINGS + DEAD_LETTER_SETTINGS).parse(config)
        return cls(
            retry_timeout_ms=told["errors.retry.timeout"],
            retry_delay_max_ms=told["errors.retry.delay.max.ms"],
            tolerates=told["errors.tolerance"] == "all",
            logs=told["errors.log.enable"],
            logs_messages=told["errors.log.include.messages"],
            dead_letter_topic=told["errors.deadletterqueue.topic.name"] or None,
            dead_letter_replicas=told["errors.deadletterqueue.topic.replication.factor"],
            with_context=told["errors.deadletterqueue.context.headers.enable"],
        )

    def pause_ms(self, attempt: int, *, began_ms: int, now_ms: int) -> int | None:
        """How long to wait before the next try; None: it is not tried again.

        `attempt` counts the failures so far, from 1. Pauses double, up to the longest.
        """
        if self.retry_timeout_ms == 0:
            return None
        pause = min(_FIRST_DELAY_MS << min(attempt - 1, 40), self.retry_delay_max_ms)
        if self.retry_timeout_ms < 0:
            return pause
        left = began_ms + self.retry_timeout_ms - now_ms
        return None if left <= 0 else min(pause, left)


def is_retriable(error: Exception) -> bool:
    """Whether the same may succeed a little later."""
    return isinstance(error, RetriableConnectError)


def is_tolerable(stage: FailureStage, error: Exception) -> bool:
    """Whether it is the record's fault, so that the record can be skipped.

    A plug-in that is given what it does not expect raises errors of Python's own.
    """
    return stage in TOLERATED and isinstance(error, _OF_RECORDS)
