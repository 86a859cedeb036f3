"""Rows of topics in lake tables: once, with their offsets, and what does not fit."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable
from tests.support.connect_tasks import SinkRig, sink_record, started_sink

from penstock.connect.connectors.lake.sink import LakeSinkConnector, LakeSinkTask
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.records import SinkRecord
from penstock.connect.values.schema import (
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    struct_schema,
)
from penstock.connect.values.struct import StructValue
from penstock.records.topic_partition import TopicPartition

AT = TopicPartition("t", 0)
ROW = struct_schema({"n": INT64_SCHEMA, "offset": STRING_SCHEMA})
WIDER = struct_schema({"n": INT64_SCHEMA, "offset": STRING_SCHEMA, "more": OPTIONAL_STRING_SCHEMA})
OTHER = struct_schema({"n": STRING_SCHEMA, "offset": STRING_SCHEMA})


def rows(first: int, end: int, schema: Schema = ROW) -> list[SinkRecord]:
    extra: tuple[Any, ...] = ("x",) * (len(schema.fields) - 2)
    return [
        sink_record(StructValue(schema, (n, "o", *extra)), n, schema=schema, key=n, timestamp=n)
        for n in range(first, end)
    ]


def task_on(path: Path, *, tolerates: bool = False, **more: str) -> tuple[LakeSinkTask, SinkRig]:
    task = LakeSinkTask()
    config = {"name": "lake", "lake.path": str(path), "lake.format": "delta", **more}
    return task, started_sink(task, config, [AT], tolerates=tolerates)


def numbers(path: Path) -> list[int]:
    return sorted(DeltaTable(str(path)).to_pyarrow_table().column("n").to_pylist())


def test_rows_and_their_offset_are_in_the_table_together(tmp_path: Path) -> None:
    task, rig = task_on(tmp_path)
    task.put(rows(0, 10))
    assert rig.sought == {}
    assert task.pre_commit({AT: 10}) == {AT: 10}
    again, rig = task_on(tmp_path)
    assert rig.sought == {AT: 10}
    again.put(rows(5, 15))  # What the table has is passed.
    again.pre_commit({AT: 15})
    table = DeltaTable(str(tmp_path)).to_pyarrow_table().sort_by("n")
    assert table.column("n").to_pylist() == list(range(15))
    assert table.column("offset").to_pylist() == list(range(15))
    assert set(table.column("value_offset").to_pylist()) == {"o"}
    assert table.column("key").to_pylist()[3] == "3"


@pytest.mark.parametrize("form", ["iceberg", "parquet"])
def test_other_formats_are_read_by_duckdb(tmp_path: Path, form: str) -> None:
    for first in (0, 10):
        task, rig = task_on(tmp_path, **{"lake.format": form})
        assert rig.sought == ({AT: first} if first else {})
        task.put(rows(first, first + 10))
        task.pre_commit({AT: first + 10})
    files = [str(one) for one in tmp_path.rglob("*.parquet") if "_penstock" not in one.parts]
    assert duckdb.sql(f"SELECT count(*), max(n) FROM read_parquet({files})").fetchall() == [
        (20, 19)
    ]


def test_a_table_follows_new_fields(tmp_path: Path) -> None:
    task, _ = task_on(tmp_path, **{"flush.size": "4"})
    task.put([*rows(0, 5), *rows(5, 10, WIDER)])
    task.pre_commit({AT: 10})
    table = DeltaTable(str(tmp_path)).to_pyarrow_table()
    assert table.column("more").to_pylist().count("x") == 5


def test_what_does_not_fit_ends_the_task_or_is_put_aside(tmp_path: Path) -> None:
    bad = [
        sink_record(StructValue(OTHER, ("text", "o")), 3, schema=OTHER),
        sink_record({"n": 1}, 4),
        sink_record(None, 5),
    ]
    task, _ = task_on(tmp_path)
    task.put(rows(0, 3))
    with pytest.raises(DataError, match="t-0 at 3: "):
        task.put(bad)
    task, rig = task_on(tmp_path, tolerates=True)
    task.put([*rows(0, 3), *bad, *rows(6, 8)])
    task.pre_commit({AT: 8})
    assert [offset for offset, _ in rig.reported] == [3, 4, 5]
    assert numbers(tmp_path) == [0, 1, 2, 6, 7]


def test_a_task_that_was_thought_dead_brings_nothing_twice(tmp_path: Path) -> None:
    old, _ = task_on(tmp_path)
    old.put(rows(0, 5))
    new, _ = task_on(tmp_path)
    new.put(rows(0, 8))
    old.pre_commit({AT: 5})
    with pytest.raises(ConnectError, match="another task"):
        new.pre_commit({AT: 8})
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]


def test_each_topic_can_have_a_table_of_its_own(tmp_path: Path) -> None:
    task, _ = task_on(tmp_path / "${topic}")
    task.put(rows(0, 2))
    task.pre_commit({AT: 2})
    assert numbers(tmp_path / "t") == [0, 1]


def test_all_errors_are_told_at_once() -> None:
    config = {
        "lake.path": "here",
        "lake.format": "csv",
        "lake.partition.by": "a b",
        "flush.size": "0",
    }
    assert set(LakeSinkConnector.validate(config).errors()) == set(config)
