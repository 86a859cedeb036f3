"""A source's task without a worker: polled by hand, with offsets that a test keeps and hands on."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.connect.errors.kinds import RetriableConnectError
from penstock.connect.plugins.contract import SourceTask
from penstock.connect.records import SourceRecord
from penstock.connect.values.struct import StructValue

WAIT_S = 60.0


class KeptOffsets:
    """What a worker would have in its offset topic; the next run of a task is given the same."""

    transaction = None

    def __init__(self) -> None:
        self.known: dict[str, dict[str, Any]] = {}
        self.config: dict[str, str] = {}

    @property
    def offset_reader(self) -> "KeptOffsets":
        return self

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.known.get(_name(partition))

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.offset(one) for one in partitions]

    def all_offsets(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return [(json.loads(name), offset) for name, offset in self.known.items()]

    def keep(self, record: SourceRecord) -> None:
        """As a worker does, through JSON."""
        if record.source_partition is not None:
            kept = json.loads(json.dumps(record.source_offset))
            self.known[_name(record.source_partition)] = kept


class TaskRun:
    """One run of a task: `start`, then polls, each committed at once unless told otherwise."""

    def __init__(self, task: SourceTask, config: Mapping[str, str], kept: KeptOffsets) -> None:
        self.task = task
        self.kept = kept
        self.records: list[SourceRecord] = []
        task.initialize(kept)
        task.start(config)

    def __enter__(self) -> "TaskRun":
        return self

    def __exit__(self, *_: object) -> None:
        self.task.stop()

    def poll(self, *, commits: bool = True) -> list[SourceRecord]:
        """What one poll brings; a poll that may be tried again brings nothing."""
        try:
            found = self.task.poll() or []
        except RetriableConnectError:
            return []
        if commits:
            self.commit(found)
        self.records += found
        return found

    def commit(self, records: list[SourceRecord]) -> None:
        """The records are in Kafka with their offsets."""
        for record in records:
            self.kept.keep(record)
            self.task.commit_record(record, partition=0, offset=0)
        if records:
            self.task.commit()

    def until(self, count: int) -> list[SourceRecord]:
        """All records of this run, once there are so many; no more than those."""
        return self.until_true(lambda: len(self.records) >= count, f"{count} records")

    def until_true(self, look: Callable[[], bool], what: str) -> list[SourceRecord]:
        """Poll until it holds."""
        give_up_s = time.monotonic() + WAIT_S
        while not look():
            assert time.monotonic() < give_up_s, f"{what}; there were {len(self.records)}"
            self.poll()
        return self.records


def plain(value: Any) -> Any:
    """A struct as a dict, with all that is in it."""
    if isinstance(value, StructValue):
        return {field.name: plain(part) for field, part in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def _name(partition: Mapping[str, Any]) -> str:
    return json.dumps(dict(partition), sort_keys=True)
