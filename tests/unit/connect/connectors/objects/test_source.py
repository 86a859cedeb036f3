"""Objects read back: order, positions, tasks, and what cannot be read."""

import pytest
from tests.support.connect_tasks import SourceRig, sink_record, started_sink, started_source
from tests.unit.connect.connectors.objects.rig import (
    MemorySinkTask,
    MemorySourceTask,
    MemoryStore,
    sink_config,
)

from penstock.connect.connectors.objects.source import TASK_COUNT, TASK_INDEX, read_so_far
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.records import SourceRecord
from penstock.records.topic_partition import TopicPartition

JSON = {"format.class": "JsonFormat"}
GENERIC = {**JSON, "mode": "GENERIC", "topic.regex.list": r"dogs:dogs/.*\.json,rest:\.json$"}


def task_on(store: MemoryStore, rig: SourceRig | None = None, **config: str) -> MemorySourceTask:
    task = MemorySourceTask(store)
    started_source(task, {**JSON, **config}, rig)
    return task


def polled(task: MemorySourceTask) -> list[SourceRecord]:
    found: list[SourceRecord] = []
    task._stopping.wait = lambda timeout=None: True  # type: ignore[method-assign]
    while records := task.poll():
        found += records
    return found


def filled(partitions: int = 2, records: int = 10, **more: str) -> MemoryStore:
    store = MemoryStore()
    places = [TopicPartition("t", p) for p in range(partitions)]
    task = MemorySinkTask(store)
    started_sink(task, sink_config(**more), places)
    task.put(
        [
            sink_record({"n": n}, n, partition=p, timestamp=n * 3_600_000)
            for n in range(records)
            for p in range(partitions)
        ]
    )
    return store


def test_what_a_sink_has_stored_goes_back_to_its_partitions_in_order() -> None:
    found = polled(task_on(filled()))
    for partition in (0, 1):
        own = [one for one in found if one.partition == partition]
        assert [one.value for one in own] == [{"n": n} for n in range(9)]
        assert {one.topic for one in own} == {"t"}


def test_folders_of_time_hold_several_partitions() -> None:
    more = {
        "partitioner_class": "HourlyPartitioner",
        "timezone": "UTC",
        "timestamp_extractor": "Record",
        "flush_size": "1",
    }
    store = filled(**more)
    found = polled(task_on(store))
    assert sorted((one.partition, one.value["n"]) for one in found) == [
        (p, n) for p in (0, 1) for n in range(10)
    ]


def test_each_record_is_read_once_wherever_a_task_stops() -> None:
    store = filled()
    for stop in range(19):
        rig, seen = SourceRig(), []
        first = task_on(store, rig, **{"record.batch.max.size": "1"})
        first._stopping.wait = lambda timeout=None: True  # type: ignore[method-assign]
        for _ in range(stop):
            for one in first.poll() or ():
                rig.keep(one)
                seen.append((one.partition, one.value["n"]))
        seen += [(one.partition, one.value["n"]) for one in polled(task_on(store, rig))]
        assert sorted(seen) == [(p, n) for p in (0, 1) for n in range(9)]  # type: ignore[type-var]


def test_what_comes_later_is_read_without_what_was_read() -> None:
    store = MemoryStore()
    store.objects["topics/t/partition=0/t+0+0000000000.json"] = b"0\n1\n"
    task = task_on(store)
    assert [one.value for one in polled(task)] == [0, 1]
    store.objects["topics/t/partition=0/t+0+0000000002.json"] = b"2\n"
    store.objects["topics/u/partition=0/u+0+0000000000.json"] = b"3\n"
    assert [one.value for one in polled(task)] == [2, 3]


def test_offsets_that_outgrow_their_digits_are_read_on() -> None:
    store = MemoryStore()
    store.objects["topics/t/partition=0/t+0+9999999999.json"] = b"1\n"
    task = task_on(store)
    assert [one.value for one in polled(task)] == [1]
    store.objects["topics/t/partition=0/t+0+10000000000.json"] = b"2\n"
    assert [one.value for one in polled(task)] == [2]


def test_tasks_share_the_folders() -> None:
    store = filled(partitions=5, flush_size="1")
    seen = []
    for index in range(3):
        task = task_on(store, **{TASK_COUNT: "3", TASK_INDEX: str(index)})
        seen += [(one.partition or 0, one.value["n"]) for one in polled(task)]
    assert sorted(seen) == [(p, n) for p in range(5) for n in range(10)]


def test_any_objects_go_to_the_topics_of_their_patterns() -> None:
    store = MemoryStore()
    store.objects = {
        "topics/dogs/a.json": b'"rex"\n',
        "topics/cats/b.json": b'"tom"\n',
        "topics/cats/b.txt": b"nothing",
    }
    found = polled(task_on(store, **GENERIC))
    assert sorted((one.topic, one.value) for one in found) == [("dogs", "rex"), ("rest", "tom")]
    assert {one.partition for one in found} == {None}


BROKEN = {
    "topics/t/partition=0/t+0+0000000000.json": b"0\n1\nno json\n",
    "topics/t/partition=0/t+0+0000000003.json": b"3\n",
}


def test_an_object_that_cannot_be_read_ends_the_task_after_what_is_before_it() -> None:
    store = MemoryStore()
    store.objects = dict(BROKEN)
    task = task_on(store)
    assert [one.value for one in task.poll() or ()] == [0, 1]
    with pytest.raises(ConnectError, match=r"t\+0\+0000000000.json cannot be read"):
        task.poll()


def test_an_object_that_cannot_be_read_is_left_out_if_that_is_wanted() -> None:
    store = MemoryStore()
    store.objects = dict(BROKEN)
    found = polled(task_on(store, **{"behavior.on.error": "LOG"}))
    assert [one.value for one in found] == [0, 1, 3]


def test_a_store_that_is_away_costs_no_record() -> None:
    store = filled(partitions=1)
    task = task_on(store, **{"record.batch.max.size": "2"})
    seen: list[int] = []
    task._stopping.wait = lambda timeout=None: True  # type: ignore[method-assign]
    for _ in range(12):
        store.broken_reads = 1
        for _ in range(2):
            try:
                seen += [one.value["n"] for one in task.poll() or ()]
            except ConnectError:
                continue
    assert seen == list(range(9))


def test_offsets_that_a_user_sets_are_checked() -> None:
    assert read_so_far({"lastFileRead": "a", "fileOffset": 3}).count == 3
    for offset in (
        {},
        {"lastFileRead": 1, "fileOffset": 1},
        {"lastFileRead": "", "fileOffset": -1},
    ):
        with pytest.raises(ConnectError):
            read_so_far(offset)
