"""A capture of one table: splits, crashes, what AWS has removed, and where it begins."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.source_tasks import KeptOffsets
from tests.unit.connect.connectors.dynamodb.stream_world import (
    HOUR_MS,
    NOW_MS,
    StreamWorld,
    WorldRun,
    WorldShard,
)

from penstock.connect.errors.kinds import ConnectError, DataError

NEVER = {"snapshot_mode": "never"}


def item(key: str) -> dict[str, Any]:
    return {"id": {"S": key}, "n": {"N": "0"}}


def split_world() -> StreamWorld:
    """A shard with two generations of children."""
    world = StreamWorld()
    for n in range(5):
        world.put("s1", f"a{n}")
    world.split("s1", "s2", "s3")
    for n in range(3):
        world.put("s2", f"b{n}")
        world.put("s3", f"c{n}")
    world.put("s2", "b0", "REMOVE")
    world.split("s3", "s4")
    world.put("s4", "d0")
    return world


ALL = ["ca0", "ca1", "ca2", "ca3", "ca4", "cb0", "cb1", "cb2", "db0", "-b0", "cc0", "cc1", "cc2"]
ALL += ["cd0"]


def test_children_come_behind_their_parents() -> None:
    told = WorldRun(split_world(), KeptOffsets(), **NEVER).steps()
    assert sorted(told) == sorted(ALL)
    assert told[:5] == ALL[:5]
    assert told.index("cd0") > told.index("cc2")


def test_a_shard_that_is_split_later_is_followed() -> None:
    world, kept = split_world(), KeptOffsets()
    run = WorldRun(world, kept, **NEVER)
    run.steps()
    world.split("s4", "s5")
    world.put("s5", "e0")
    assert run.steps()[len(ALL) :] == ["ce0"]


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 2)), max_size=8))
@settings(max_examples=60, deadline=None)
def test_wherever_it_stops_nothing_is_lost_and_nothing_comes_twice(
    runs: list[tuple[int, int]],
) -> None:
    """Each run makes some steps; of its last one only some records are committed."""
    world, kept = split_world(), KeptOffsets()
    committed: list[str] = []
    for steps, count in [*runs, (60, 0)]:
        run = WorldRun(world, kept, **NEVER)
        for _ in range(steps - 1):
            run.step()
        committed += run.told()
        run.records.clear()
        for one in run.step(commits=False)[:count]:
            kept.keep(one)
        run.records = run.records[:count]
        committed += run.told()
    assert sorted(committed) == sorted(ALL)


def test_a_snapshot_resumes_behind_any_item_and_then_the_stream_begins() -> None:
    world, kept = StreamWorld(), KeptOffsets()
    world.items = {f"i{n}": item(f"i{n}") for n in range(7)}
    world.put("s1", "old", at_ms=NOW_MS - HOUR_MS)
    told: list[str] = []
    world.put("s1", "new")
    for count in range(4):
        run = WorldRun(world, kept, snapshot_fetch_size="3")
        for one in run.step(commits=False)[:count]:
            kept.keep(one)
            told.append(one.key["id"])
    run = WorldRun(world, kept, snapshot_fetch_size="3")
    rest = run.steps(20)
    assert [*told, *(one[1:] for one in rest)] == [*world.items, "new"]
    marks = [one.value["source"]["snapshot"] for one in run.records]
    assert marks[-2:] == ["last", "false"]
    assert kept.known['{"table": "orders"}']["snapshot"] == "done"
    world.items["late"] = item("late")
    assert WorldRun(world, kept).steps() == []


def test_latest_begins_with_the_next_change_also_behind_a_crash() -> None:
    world, kept = split_world(), KeptOffsets()
    for one in world.shards_by_id.values():
        for change in one.changes:
            change["dynamodb"]["ApproximateCreationDateTime"] = change["dynamodb"][
                "ApproximateCreationDateTime"
            ].replace(year=2020)
    run = WorldRun(world, kept, **NEVER, stream_initial_position="LATEST")
    run.steps()
    world.put("s4", "x")
    assert run.steps() == ["cx"]
    world.put("s2", "y")
    again = WorldRun(world, kept, **NEVER, stream_initial_position="LATEST")
    assert again.steps() == ["cy"]


def test_an_iterator_that_expired_is_replaced() -> None:
    world = StreamWorld()
    run = WorldRun(world, KeptOffsets(), **NEVER)
    world.put("s1", "a")
    run.steps(4)
    world.expired.add("s1:1")
    world.put("s1", "b")
    for _ in range(3):
        run.step()
    world.expired.clear()
    assert run.steps(4) == ["ca", "cb"]
    assert "AFTER_SEQUENCE_NUMBER s1" in world.asked


def trimmed_world(kept: KeptOffsets, **given: str) -> StreamWorld:
    """One change was read, then a day went by and the next one was removed."""
    world = StreamWorld()
    world.items = {"a": item("a"), "c": item("c")}
    world.put("s1", "a")
    assert WorldRun(world, kept, **given).steps()[-1] == "ca"
    world.now_ms += 30 * HOUR_MS
    world.put("s1", "b")
    world.put("s1", "c")
    world.trim("s1", 2)
    return world


def test_changes_that_were_removed_fail_the_task_by_default() -> None:
    kept = KeptOffsets()
    world = trimmed_world(kept, **NEVER)
    with pytest.raises(ConnectError, match=r"beyond the trim horizon.*stream\.gap\.handling\.mode"):
        WorldRun(world, kept, **NEVER).steps()


def test_changes_that_were_removed_can_be_passed_over() -> None:
    kept = KeptOffsets()
    world = trimmed_world(kept, **NEVER)
    given = {**NEVER, "stream_gap_handling_mode": "continue"}
    assert WorldRun(world, kept, **given).steps() == ["cc"]
    assert WorldRun(world, kept, **given).steps() == []


def test_changes_that_were_removed_can_be_made_good_by_a_snapshot() -> None:
    kept = KeptOffsets()
    world = trimmed_world(kept)
    given = {"stream_gap_handling_mode": "snapshot"}
    first = WorldRun(world, kept, **given)
    for _ in range(3):
        first.step()
    assert first.told() == ["ra", "rc"]
    assert WorldRun(world, kept, **given).steps() == ["cc"]
    assert WorldRun(world, kept, **given).steps() == []


def test_shards_that_are_all_gone_are_a_gap_unless_a_heartbeat_was_there() -> None:
    world, kept = StreamWorld(), KeptOffsets()
    world.put("s1", "a")
    run = WorldRun(world, kept, **NEVER)
    run.steps(5)
    world.shards_by_id = {"s9": WorldShard("s1")}
    world.now_ms += 30 * HOUR_MS
    with pytest.raises(ConnectError, match="was read for a day"):
        WorldRun(world, kept, **NEVER).steps(3)


def test_a_heartbeat_keeps_a_quiet_table_in_touch() -> None:
    world, kept = StreamWorld(), KeptOffsets()
    world.put("s1", "a")
    run = WorldRun(world, kept, **NEVER)
    assert run.capture.seen_mark() is None
    run.steps(5)
    world.now_ms += 30 * HOUR_MS
    run.steps(3)
    mark = run.capture.seen_mark()
    assert mark is not None and mark.seen_ms == world.now_ms
    kept.known['{"table": "orders"}'] = mark.offset()
    world.shards_by_id = {"s9": WorldShard(None)}
    world.put("s9", "b")
    assert WorldRun(world, kept, **NEVER).steps(5) == ["cb"]


def test_another_stream_of_the_same_table_is_a_gap() -> None:
    world, kept = StreamWorld(), KeptOffsets()
    world.put("s1", "a")
    run = WorldRun(world, kept, **NEVER)
    run.steps(5)
    world.shards_by_id["s1"].is_closed = True
    run.steps(3)
    world.label, world.shards_by_id = "second", {"s1": WorldShard(None)}
    world.put("s1", "b")
    with pytest.raises(ConnectError, match="another stream"):
        run.steps(5)
    given = {**NEVER, "stream_gap_handling_mode": "continue"}
    assert WorldRun(world, kept, **given).steps(5) == ["cb"]
    assert WorldRun(world, kept, **NEVER).steps(5) == []


def test_what_comes_before_a_change_that_cannot_be_read_arrives_first() -> None:
    world, kept = StreamWorld(), KeptOffsets()
    for key in "abc":
        world.put("s1", key)
    world.shards_by_id["s1"].changes[1]["dynamodb"]["NewImage"]["bad"] = {"X": "?"}
    run = WorldRun(world, kept, **NEVER)
    with pytest.raises(DataError, match=r"table orders, shard s1, change 2.*no attribute"):
        run.steps()
    assert run.told() == ["ca"]
    given = {**NEVER, "event_processing_failure_handling_mode": "skip"}
    assert WorldRun(world, kept, **given).steps() == ["cc"]


def test_items_before_one_that_cannot_be_read_arrive_first() -> None:
    world, kept = StreamWorld(), KeptOffsets()
    world.items = {key: item(key) for key in "abcd"}
    world.items["c"]["bad"] = {"X": "?"}
    run = WorldRun(world, kept)
    with pytest.raises(DataError, match=r'table orders, item \{"id": \["S", "c"\]\}'):
        run.steps()
    assert run.told() == ["ra", "rb"]
    given = {"event_processing_failure_handling_mode": "warn"}
    assert WorldRun(world, kept, **given).steps(5) == ["rd"]
