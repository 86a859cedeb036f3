"""Columns and their offsets on the way out: acknowledged, or in transactions."""

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from penstock.connect.columnar.contract import ColumnarSourceTask, ColumnBatch
from penstock.connect.columnar.sending import AcknowledgedColumns, TransactionalColumns
from penstock.connect.columnar.source_loop import ColumnarSourceLoop
from penstock.connect.converters.text import StringConverter
from penstock.connect.plugins.contract import Config
from penstock.connect.records import SourceRecord
from penstock.connect.running.counts import COMMITTED, NOT_COMMITTED, POLLED, WRITTEN
from penstock.connect.store.config_records import LogEntry
from penstock.connect.values.schema import STRING_SCHEMA
from penstock.errors import PenstockError
from penstock.spark.sink.schema import RecordColumns


class Converters:
    key = StringConverter({}, is_key=True)
    value = StringConverter({}, is_key=False)


class Line:
    """The task's end of the line to its worker."""

    def __init__(self) -> None:
        self.stopping, self.paused = threading.Event(), threading.Event()
        self.changed = threading.Event()
        self.counts: Counter[str] = Counter()
        self.topics: list[str] = []

    def tell_state(self, state: str) -> None:
        return

    def tell_topic(self, topic: str) -> None:
        self.topics.append(topic)

    def ask_reconfiguration(self) -> None:
        return

    def keep_offsets(self, records: Sequence[LogEntry]) -> None:
        return

    def count(self, metric: str, number: int = 1) -> None:
        self.counts[metric] += number

    def tell_counts(self) -> None:
        return

    def verify(self) -> None:
        return


class Log:
    """A writer, and what came of it."""

    def __init__(self) -> None:
        self.open: list[Any] = []
        self.committed: list[list[Any]] = []
        self.aborted = 0
        self.fails = False

    def write(self, topic: str, columns: RecordColumns, rows: Any) -> None:
        self.open.append((topic, rows.column(columns.value).to_pylist()))

    def write_notes(self, topic: str, notes: Sequence[LogEntry]) -> None:
        self.open.append((topic, [note.value for note in notes]))

    def commit(self) -> None:
        if self.fails:
            raise PenstockError("fenced")
        self.committed.append(self.open)
        self.open = []

    def abort(self) -> None:
        self.aborted += 1
        self.open = []

    def keep(self, notes: Sequence[LogEntry]) -> None:
        self.write_notes("kept", notes)


class Task(ColumnarSourceTask):
    def __init__(self, line: Line | None = None, polls: Sequence[list[ColumnBatch]] = ()) -> None:
        self.commits = 0
        self.polls = list(polls)
        self.line = line

    def start(self, config: Config) -> None:
        return

    def poll(self) -> list[SourceRecord] | None:
        raise AssertionError("columns were wanted")

    def poll_columns(self) -> list[ColumnBatch]:
        if not self.polls:
            assert self.line is not None
            self.line.stopping.set()
            return []
        return self.polls.pop(0)

    def commit(self) -> None:
        self.commits += 1


def batch(*values: str, position: int = 0, place: str = "p") -> ColumnBatch:
    return ColumnBatch(
        topic="t",
        partition=None,
        schema=STRING_SCHEMA,
        values=pa.array(values, pa.string()),
        timestamp_ms=5,
        source_partition={"place": place},
        source_offset={"position": position},
    )


def transactional(
    task: Task,
    log: Log,
    line: Line,
    *,
    interval_s: float | None = None,
    now: list[float] | None = None,
) -> TransactionalColumns:
    clock = now or [0.0]
    return TransactionalColumns(
        task,
        "c",
        log,
        Converters(),
        line,
        ensure_topic=lambda topic: line.topics.append(f"made {topic}"),
        offset_topic="offsets",
        interval_s=interval_s,
        clock=lambda: clock[0],
    )


def test_a_poll_is_a_transaction_with_the_last_offset_of_each_source_partition() -> None:
    task, log, line = Task(), Log(), Line()
    sender = transactional(task, log, line)
    sender.send(
        [batch("a", "b", position=2), batch("c", position=3), batch("d", position=9, place="q")]
    )
    assert log.committed == [
        [
            ("t", [b"a", b"b"]),
            ("t", [b"c"]),
            ("t", [b"d"]),
            ("offsets", [b'{"position":3}', b'{"position":9}']),
        ]
    ]
    assert task.commits == 1 and line.topics[:2] == ["made t", "t"]
    assert line.counts == {COMMITTED: 1, WRITTEN: 4}
    sender.tend(at_end=True)
    assert len(log.committed) == 1


def test_an_interval_holds_several_polls_together() -> None:
    now = [0.0]
    task, log, line = Task(), Log(), Line()
    sender = transactional(task, log, line, interval_s=10.0, now=now)
    sender.send([batch("a", position=1)])
    now[0] = 9.0
    sender.send([batch("b", position=2)])
    sender.tend()
    assert log.committed == []
    now[0] = 10.0
    sender.tend()
    assert log.committed == [[("t", [b"a"]), ("t", [b"b"]), ("offsets", [b'{"position":2}'])]]


def test_a_task_that_fails_leaves_nothing_behind() -> None:
    task, log, line = Task(), Log(), Line()
    sender = transactional(task, log, line, interval_s=10.0)
    sender.send([batch("a", position=1)])
    sender.give_up()
    assert (log.aborted, log.open, log.committed) == (1, [], [])
    sender.give_up()
    assert log.aborted == 1


def test_a_transaction_that_is_not_committed_is_counted_and_ends_the_task() -> None:
    task, log, line = Task(), Log(), Line()
    log.fails = True
    with pytest.raises(PenstockError, match="fenced"):
        transactional(task, log, line).send([batch("a")])
    assert line.counts == {NOT_COMMITTED: 1} and task.commits == 0


def test_offsets_follow_what_was_acknowledged_once_in_a_while() -> None:
    now = [0.0]
    task, log, line = Task(), Log(), Line()
    sender = AcknowledgedColumns(
        task,
        "c",
        log,
        Converters(),
        log,
        line,
        ensure_topic=lambda topic: None,
        flush_s=10.0,
        clock=lambda: now[0],
    )
    sender.send([batch("a", position=1)])
    sender.tend()
    assert log.open == [("t", [b"a"])]
    sender.send([batch("b", position=2)])
    now[0] = 10.0
    sender.tend()
    assert log.open[2:] == [("kept", [b'{"position":2}'])] and task.commits == 1
    sender.tend(at_end=True)
    assert len(log.open) == 3


def test_the_loop_counts_rows_and_not_batches() -> None:
    line, log = Line(), Log()
    task = Task(line, [[batch("a", "b")], [], [batch("c")]])
    ColumnarSourceLoop(task, transactional(task, log, line), line).run()
    assert line.counts[POLLED] == line.counts[WRITTEN] == 3
    assert len(log.committed) == 2
