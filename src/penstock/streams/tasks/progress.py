"""How far tasks have come, told in a topic, for whoever has to go on without their pages.

A batch adds to it in its own transaction: where the next one begins in each partition it read, and
what a task keeps beside its stores. So it always fits the changelogs: both are there, or neither.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.streams.tasks.state_values import decoded, encoded

TASK_STATE = ""  # The shelf of what belongs to the task and to no store.
TASK_KEY = b"task"
POSITION = b"position "


def progress_topic(stage: int) -> str:
    """The topic of a stage's progress, without the application's id."""
    return f"stage-{stage}-progress-changelog"


def position_row(topic: str, partition: int, offset: int) -> tuple[bytes, bytes]:
    """Key and value that tell where a partition is read on."""
    return POSITION + f"{topic} {partition}".encode(), encoded(offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMarks:
    """What a task keeps beside its stores."""

    stream_ms: int = -1
    due_ms: tuple[int, ...] = ()  # Of its punctuators, in the order they were scheduled.
    clocks: Mapping[str, Any] = field(default_factory=dict)  # By the state they belong to.
    is_placed: bool = True  # Whether the batch also told where the next one begins.

    @classmethod
    def read(cls, data: bytes) -> "TaskMarks":
        """The marks of these bytes."""
        stream_ms, due_ms, clocks, is_placed = decoded(data)
        return cls(stream_ms=stream_ms, due_ms=tuple(due_ms), clocks=clocks, is_placed=is_placed)

    def written(self) -> bytes:
        """The marks as bytes, for the task's page and for the topic."""
        return encoded((self.stream_ms, self.due_ms, dict(self.clocks), self.is_placed))


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProgress:
    """What a progress topic tells in all."""

    positions: dict[tuple[str, int], int] = field(default_factory=dict)
    marks: dict[int, bytes] = field(default_factory=dict)  # Of tasks, by their numbers.


def progress_from(rows: Iterable[tuple[int, bytes | None, bytes | None]]) -> StageProgress:
    """Read the rows of a topic, in order: partition, key and value."""
    found = StageProgress()
    for partition, key, value in rows:
        if value is None or key is None:
            continue
        if key == TASK_KEY:
            found.marks[partition] = value
        elif key.startswith(POSITION):
            topic, number = key[len(POSITION) :].decode().split(" ")
            found.positions[topic, int(number)] = decoded(value)
    return found
