"""Objects written and read as columns: the same as record by record, wherever a batch is cut."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.connect_tasks import SourceRig, sink_record, started_sink, started_source
from tests.unit.connect.connectors.objects.rig import (
    MemorySinkTask,
    MemorySourceTask,
    MemoryStore,
    sink_config,
)

from penstock.connect.columnar.arrow_schemas import arrow_schema_of, connect_value_of
from penstock.connect.columnar.contract import ColumnBatch, ValueColumns
from penstock.connect.values.schema import (
    BYTES_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    Schema,
    struct_schema,
)
from penstock.connect.values.struct import StructValue
from penstock.records.topic_partition import TopicPartition

AT = TopicPartition("t", 0)
ROW = struct_schema({"n": INT64_SCHEMA, "s": OPTIONAL_STRING_SCHEMA})
OTHER = struct_schema({"n": INT64_SCHEMA})
FORMATS = ["JsonFormat", "ParquetFormat"]


def sink_on(store: MemoryStore, **more: str) -> MemorySinkTask:
    task = MemorySinkTask(store)
    started_sink(task, sink_config(**more), [AT])
    return task


def rows(schema: Schema, first: int, count: int) -> list[dict[str, object]]:
    names = [one.name for one in schema.fields]
    return [{k: n if k == "n" else f'"{n}"' for k in names} for n in range(first, first + count)]


def put_columns(task: MemorySinkTask, schema: Schema, first: int, count: int) -> bool:
    kind = pa.struct(list(arrow_schema_of(schema)))
    return task.put_columns(
        ValueColumns(
            at=AT,
            offsets=np.arange(first, first + count),
            schema=schema,
            values=pa.array(rows(schema, first, count), kind),
        )
    )


def put_records(task: MemorySinkTask, schema: Schema, first: int, count: int) -> None:
    values = (connect_value_of(schema, one) for one in rows(schema, first, count))
    task.put([sink_record(v, n, schema=schema) for n, v in enumerate(values, start=first)])


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=30)
@given(
    parts=st.lists(
        st.tuples(st.integers(1, 9), st.booleans(), st.sampled_from([ROW, ROW, OTHER])),
        min_size=1,
        max_size=8,
    )
)
def test_columns_and_records_in_any_turns_make_the_same_objects(
    form: str, parts: list[tuple[int, bool, Schema]]
) -> None:
    mixed, single = MemoryStore(), MemoryStore()
    both = [sink_on(store, format_class=form, flush_size="4") for store in (mixed, single)]
    first = 0
    for count, is_columns, schema in parts:
        if is_columns:
            assert put_columns(both[0], schema, first, count)
        else:
            put_records(both[0], schema, first, count)
        put_records(both[1], schema, first, count)
        first += count
    assert mixed.objects == single.objects
    assert both[0].pre_commit({AT: first}) == both[1].pre_commit({AT: first})


@pytest.mark.parametrize("form", FORMATS)
def test_columns_that_come_again_are_passed(form: str) -> None:
    store = MemoryStore()
    task = sink_on(store, format_class=form, flush_size="4")
    assert put_columns(task, ROW, 0, 6)
    assert put_columns(task, ROW, 2, 6)
    again = MemoryStore()
    put_records(sink_on(again, format_class=form, flush_size="4"), ROW, 0, 8)
    assert store.objects == again.objects


def test_values_that_a_format_has_no_columns_for_are_refused_and_nothing_is_taken() -> None:
    store = MemoryStore()
    task = sink_on(store, format_class="ParquetFormat")
    texts = ValueColumns(
        at=AT, offsets=np.arange(5), schema=OPTIONAL_STRING_SCHEMA, values=pa.array(["a"] * 5)
    )
    assert not task.put_columns(texts)
    assert task.pre_commit({AT: 0}) == {AT: 0} and not store.objects


def polled_columns(task: MemorySourceTask) -> list[ColumnBatch]:
    found: list[ColumnBatch] = []
    task._stopping.wait = lambda timeout=None: True  # type: ignore[method-assign]
    while batches := task.poll_columns():
        found += batches
    return found


def source_on(store: MemoryStore, rig: SourceRig | None = None, **more: str) -> MemorySourceTask:
    task = MemorySourceTask(store)
    started_source(task, {"format.class": "ParquetFormat", **more}, rig)
    return task


@pytest.mark.parametrize("done", [0, 1, 3, 4, 7])
def test_a_source_goes_on_behind_what_was_read_in_the_other_lane(done: int) -> None:
    store = MemoryStore()
    put_records(sink_on(store, format_class="ParquetFormat", flush_size="4"), ROW, 0, 12)
    rig = SourceRig()
    first = source_on(store, rig, **{"record.batch.max.size": str(max(done, 1))})
    for record in (first.poll() or [])[:done]:
        rig.keep(record)
    found = polled_columns(source_on(store, rig))
    values = [row["n"] for batch in found for row in batch.values.to_pylist()]
    assert values == list(range(done, 12))
    assert {(batch.topic, batch.partition) for batch in found} == {("t", 0)}
    last = found[-1]
    assert last.source_offset == {"lastFileRead": "t+0+0000000008.snappy.parquet", "fileOffset": 4}
    assert connect_value_of(ROW, last.values[-1].as_py()) == StructValue(ROW, (11, '"11"'))
    rig.kept[frozenset((last.source_partition or {}).items())] = dict(last.source_offset or {})
    assert polled_columns(source_on(store, rig)) == []
    assert not source_on(store, rig).poll()


def test_bytes_are_read_as_columns_too() -> None:
    store = MemoryStore()
    task = sink_on(store, format_class="ByteArrayFormat", flush_size="3")
    task.put_columns(
        ValueColumns(
            at=AT, offsets=np.arange(3), schema=BYTES_SCHEMA, values=pa.array([b"a", b"", b"\xff"])
        )
    )
    (batch,) = polled_columns(source_on(store, **{"format.class": "ByteArrayFormat"}))
    assert batch.values.to_pylist() == [b"a", b"", b"\xff"] and batch.schema == BYTES_SCHEMA
