"""Cuts, names, offsets and replays of a sink of objects, on a store in memory."""

import gzip
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.connect_tasks import SinkRig, sink_record, started_sink
from tests.unit.connect.connectors.objects.rig import (
    MEMORY,
    MemorySinkTask,
    MemoryStore,
    sink_config,
)

from penstock.connect.errors.kinds import DataError, RetriableConnectError
from penstock.connect.plugins.config_def import ConfigDef, ConfigEntry, ConfigType, Importance
from penstock.connect.records import SinkRecord
from penstock.connect.values.schema import INT64_SCHEMA, STRING_SCHEMA
from penstock.records.topic_partition import TopicPartition

AT = TopicPartition("t", 0)
ZERO = "topics/t/partition=0/t+0+"


def task_on(
    store: MemoryStore, *, tolerates: bool = False, clock_ms: int = 0, **more: str
) -> tuple[MemorySinkTask, SinkRig]:
    task = MemorySinkTask(store, clock_ms)
    return task, started_sink(task, sink_config(**more), [AT], tolerates=tolerates)


def committed(task: MemorySinkTask, consumed: int) -> int | None:
    return task.pre_commit({AT: consumed}).get(AT)


def numbered(first: int, end: int) -> list[SinkRecord]:
    return [sink_record({"n": n}, n, timestamp=n * 1000) for n in range(first, end)]


def test_an_object_has_as_many_records_as_flush_size_and_is_named_after_its_first() -> None:
    store = MemoryStore()
    task, _ = task_on(store)
    task.put(numbered(5, 12))
    assert store.objects == {
        f"{ZERO}0000000005.json": b'{"n":5}\n{"n":6}\n{"n":7}\n',
        f"{ZERO}0000000008.json": b'{"n":8}\n{"n":9}\n{"n":10}\n',
    }
    assert committed(task, 12) == 11


def test_nothing_is_committed_before_the_first_cut() -> None:
    task, _ = task_on(MemoryStore())
    task.put(numbered(0, 2))
    assert committed(task, 2) is None


def test_a_task_that_starts_at_the_last_cut_makes_the_same_objects() -> None:
    store = MemoryStore()
    task, _ = task_on(store)
    task.put(numbered(0, 8))
    before = dict(store.objects)
    again, _ = task_on(store)  # The offsets of the second cut were never committed.
    again.put(numbered(3, 8))
    assert store.objects == before


@given(
    cuts=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    crashes=st.lists(st.integers(0, 5), max_size=4),
    flush=st.integers(1, 5),
)
def test_each_record_is_there_once_wherever_a_task_dies(
    cuts: list[int], crashes: list[int], flush: int
) -> None:
    store, total, position = MemoryStore(), sum(cuts), 0
    for crash in [*crashes, len(cuts)]:
        task, _ = task_on(
            store,
            flush_size=str(flush),
            partitioner_class="FieldPartitioner",
            partition_field_name="even",
        )
        at = position
        for size in cuts[: crash + 1]:
            end = min(total, at + size)
            task.put([sink_record({"n": n, "even": n % 2}, n) for n in range(at, end)])
            at = end
            if crash % 2:  # Some die before they have told how far they were.
                position = committed(task, at) or position
    end_offset = committed(task, at) or position
    found = sorted(json.loads(line)["n"] for one in store.objects.values() for line in one.split())
    assert found[:end_offset] == list(range(end_offset))
    assert len(found) == len(set(found))


def test_a_store_that_is_away_is_tried_again_with_nothing_written_twice() -> None:
    store = MemoryStore()
    task, rig = task_on(store, retry_backoff_ms="70")
    store.failures = 2
    records = numbered(0, 4)
    for _ in range(2):
        with pytest.raises(RetriableConnectError):
            task.put(records)
    assert rig.timeout_ms == 70
    assert committed(task, 4) == 3  # This time the store took it.
    task.put(records)
    task.put(numbered(4, 6))
    assert store.puts == [f"{ZERO}0000000000.json", f"{ZERO}0000000003.json"]
    assert store.objects[store.puts[1]] == b'{"n":3}\n{"n":4}\n{"n":5}\n'


def test_a_store_that_is_away_at_a_commit_does_not_end_the_task() -> None:
    store = MemoryStore()
    task, _ = task_on(store)
    store.failures = 2
    with pytest.raises(RetriableConnectError):
        task.put(numbered(0, 3))
    assert committed(task, 3) is None
    assert committed(task, 3) == 3


def test_records_too_far_apart_begin_another_object() -> None:
    store = MemoryStore()
    more = {"rotate_interval_ms": "2000", "timestamp_extractor": "Record"}
    task, _ = task_on(store, flush_size="100", **more)
    task.put(numbered(0, 5))
    assert sorted(store.objects) == [f"{ZERO}0000000000.json", f"{ZERO}0000000002.json"]
    assert committed(task, 5) == 4


def test_the_clock_ends_objects_when_offsets_are_committed() -> None:
    store = MemoryStore()
    more = {"rotate_schedule_interval_ms": "1000", "timezone": "UTC"}
    task, _ = task_on(store, flush_size="100", clock_ms=500, **more)
    task.put(numbered(0, 2))
    assert committed(task, 2) is None
    task.now_ms = 1000
    assert committed(task, 2) == 2
    assert list(store.objects) == [f"{ZERO}0000000000.json"]


def test_another_schema_begins_another_object() -> None:
    store = MemoryStore()
    task, _ = task_on(store, flush_size="2")
    task.put([sink_record(1, 0, schema=INT64_SCHEMA), sink_record("a", 1, schema=STRING_SCHEMA)])
    assert list(store.objects) == [f"{ZERO}0000000000.json"]
    assert committed(task, 2) == 1


def test_a_record_that_cannot_be_written_ends_the_task_by_name() -> None:
    task, _ = task_on(MemoryStore())
    with pytest.raises(DataError, match="t-0 at 7: "):
        task.put([sink_record(object(), 7)])


def test_a_record_that_cannot_be_written_is_put_aside_where_that_is_tolerated() -> None:
    store = MemoryStore()
    task, rig = task_on(store, tolerates=True)
    task.put([*numbered(0, 2), sink_record(object(), 2), sink_record(None, 3), *numbered(4, 5)])
    assert [offset for offset, _ in rig.reported] == [2, 3]
    assert store.objects == {f"{ZERO}0000000000.json": b'{"n":0}\n{"n":1}\n{"n":4}\n'}
    assert committed(task, 5) == 5


def test_records_that_are_passed_do_not_hold_offsets_back() -> None:
    task, _ = task_on(MemoryStore(), behavior_on_null_values="ignore")
    task.put([sink_record(None, n) for n in range(4)])
    assert committed(task, 4) == 4


def test_a_transform_changes_the_folder_and_not_the_name() -> None:
    store = MemoryStore()
    task, _ = task_on(store, flush_size="1")
    task.put(
        [
            SinkRecord(
                topic="new",
                partition=0,
                value=1,
                offset=4,
                original_topic="t",
                original_partition=0,
                original_offset=4,
            )
        ]
    )
    assert list(store.objects) == ["topics/new/partition=0/t+0+0000000004.json"]


def test_what_is_not_stored_is_forgotten_with_its_partition() -> None:
    store = MemoryStore()
    task, _ = task_on(store)
    task.put(numbered(0, 2))
    task.close([AT])
    task.open([AT])
    task.put(numbered(0, 3))
    assert store.objects == {f"{ZERO}0000000000.json": b'{"n":0}\n{"n":1}\n{"n":2}\n'}


class Zipping(MemorySinkTask):
    kind = replace(
        MEMORY,
        sink_config=ConfigDef(
            ConfigEntry("s3.compression.type", ConfigType.STRING, "gzip", Importance.LOW, ""),
            ConfigEntry("s3.compression.level", ConfigType.INT, 6, Importance.LOW, ""),
        ),
    )


def test_the_same_records_make_the_same_zipped_bytes() -> None:
    one, other = MemoryStore(), MemoryStore()
    for store in (one, other):
        task = Zipping(store)
        started_sink(task, sink_config(), [AT])
        task.put(numbered(0, 3))
    assert one.objects == other.objects
    assert gzip.decompress(one.objects[f"{ZERO}0000000000.json.gz"]).count(b"\n") == 3
