"""Lines of a file as records, with the position behind each."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.file.source import (
    FileStreamSourceConnector,
    FileStreamSourceTask,
)
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.plugins.contract import ExactlyOnceSupport


class Context:
    """A task's context with one known offset."""

    transaction = None

    def __init__(self, position: int | None) -> None:
        self.config: dict[str, str] = {}
        self._position = position

    @property
    def offset_reader(self) -> "Context":
        return self

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return None if self._position is None else {"position": self._position}

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.offset(one) for one in partitions]


def task_on(path: Path, position: int | None = None, batch: int = 2000) -> FileStreamSourceTask:
    task = FileStreamSourceTask()
    task.initialize(Context(position))
    task.start({"file": str(path), "topic": "t", "batch.size": str(batch)})
    task._stopping.set()  # It does not wait for more.
    return task


def polled(task: FileStreamSourceTask) -> list[tuple[str, int]]:
    found = []
    while records := task.poll():
        for one in records:
            assert one.source_offset is not None
            found.append((one.value, one.source_offset["position"]))
    return found


def test_a_line_is_sent_when_its_end_is_there(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"one\ntw")
    task = task_on(path)
    assert polled(task) == [("one", 4)]
    with path.open("ab") as file:
        file.write(b"o\r\nthree\rfour\r")
    assert polled(task) == [("two", 9), ("three", 15)]
    with path.open("ab") as file:
        file.write(b"\n")
    assert polled(task) == [("four", 21)]
    task.stop()


def test_it_goes_on_at_the_position_that_was_committed(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"one\ntwo\n")
    assert polled(task_on(tmp_path / "in", 4)) == [("two", 8)]


def test_a_file_may_come_later(tmp_path: Path) -> None:
    task = task_on(tmp_path / "in")
    assert task.poll() is None
    (tmp_path / "in").write_bytes(b"here\n")
    assert polled(task) == [("here", 5)]


@given(
    st.lists(st.text("ab \u00e9", max_size=5), max_size=30), st.integers(1, 7), st.integers(0, 30)
)
def test_wherever_it_is_stopped_no_line_is_lost_or_comes_twice(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], batch: int, polls: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "in"
    path.write_text("".join(f"{line}\n" for line in lines))
    first, found, position = task_on(path, batch=batch), [], None
    for _ in range(polls):
        for one in first.poll() or []:
            assert one.source_offset is not None
            found.append(one.value)
            position = one.source_offset["position"]
    first.stop()
    found += [value for value, _ in polled(task_on(path, position, batch))]
    assert found == lines


def test_offsets_that_cannot_be_used_are_refused() -> None:
    connector = FileStreamSourceConnector()
    config = {"file": "/in", "topic": "t"}
    named = frozenset({("filename", "/in")})
    assert connector.alter_offsets(config, {named: {"position": 3}, frozenset(): None})
    for partition, offset in (
        (named, {}),
        (named, {"position": "3"}),
        (named, {"position": -1}),
        (frozenset(), {"position": 3}),
    ):
        with pytest.raises(ConnectError):
            connector.alter_offsets(config, {partition: offset})
    with pytest.raises(ConnectError):
        connector.alter_offsets({"topic": "t"}, {})


def test_a_file_can_be_read_exactly_once_and_standard_input_cannot() -> None:
    connector = FileStreamSourceConnector()
    supported = connector.exactly_once_support({"file": "/in", "topic": "t"})
    assert supported is ExactlyOnceSupport.SUPPORTED
    assert connector.exactly_once_support({"topic": "t"}) is ExactlyOnceSupport.UNSUPPORTED
