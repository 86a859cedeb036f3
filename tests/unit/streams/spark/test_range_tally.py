"""What a range adds up to where it is read is what its rows add up to behind the JVM."""

import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from penstock.client.values import TopicPartition
from penstock.streams import (
    BYTES,
    INTEGER,
    LONG,
    STRING,
    Collect,
    Count,
    First,
    Last,
    Max,
    Min,
    StreamsBuilder,
    StreamsTopology,
    Sum,
    TimeWindows,
    col,
)
from penstock.streams.columns.aggregates import AnyTally
from penstock.streams.columns.in_python import computing
from penstock.streams.plan.native import NativeStage, adds_up_what_is_read, native_tally
from penstock.streams.plan.stages import cut
from penstock.streams.spark.combining import Combined, combine, unpacked
from penstock.streams.spark.range_tally import RangeTally
from penstock.streams.steps.aggregates import AggregateStream
from penstock.streams.tasks.batch import KeyTotal, UnreadableRecord
from penstock.streams.values.records import StreamRecord
from penstock.streams.values.serdes import Serde

KINDS = {"long": pa.int64(), "string": pa.string(), "bytes": pa.binary()}
GROUPS = (7, 11)
PLACE = TopicPartition("numbers", 1)
Read = tuple[bytes | None, bytes | None, int]

VALUES: dict[str, list[bytes | None]] = {
    "string": [None, b"ada", b"bob", "émile".encode(), b""],
    "long": [None, *(n.to_bytes(8, "big", signed=True) for n in (0, 5, -7, 2**63 - 1, -(2**63)))],
    "integer": [None, *(n.to_bytes(4, "big", signed=True) for n in (0, 5, -7, 2**31 - 1))],
    "bytes": [None, b"\xff", b""],
}


def topology(serde: Serde[Any], name: str) -> StreamsTopology:
    builder, value = StreamsBuilder(value=serde), col("value")
    grouped = builder.stream("numbers").group_by_key()
    hopping = TimeWindows.of(100, grace_ms=30, advance_ms=40)
    match name:
        case "count":
            grouped.count()
        case "rows":
            known = {"n": Count(), "known": Count(value), "most": Max(col("key"))}
            others = {} if serde == BYTES else {"first": First(value), "least": Min(value)}
            sums = {"sum": Sum(value)} if serde in (LONG, INTEGER) else {}
            grouped.aggregate(**known, **others, **sums)
        case "windows":
            grouped.windowed_by(hopping).count()
        case _:
            of = col("key") if serde == BYTES else value
            columns = {"last": Last(of), "some": Collect(of, limit=3)}
            grouped.windowed_by(hopping).aggregate(**columns)
    return builder.build()


def stage_of(serde: Serde[Any], name: str) -> NativeStage:
    (stage,) = cut(topology(serde, name))
    found = native_tally(stage.topology)
    assert found is not None and adds_up_what_is_read(found)
    return found


def random_records(chance: random.Random, serde: Serde[Any], count: int) -> list[Read]:
    return [
        (
            chance.choice((None, b"a", b"b", b"c")),
            chance.choice(VALUES[serde.name]),
            1_000 + chance.choice((0, 1, 5, 30, 200)) * number,
        )
        for number in range(count)
    ]


def as_read(records: list[Read], first: int) -> pa.RecordBatch:
    """As the source has them."""
    keys, values, times = zip(*records, strict=True)
    stamp = pa.timestamp("us", tz="UTC")
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "offset": pa.array(range(first, first + len(records)), pa.int64()),
            "timestamp": pa.array([at_ms * 1000 for at_ms in times], pa.int64()).cast(stamp),
        }
    )


def behind_the_jvm(stage: NativeStage, records: list[Read]) -> Combined:
    """What the rows add up to that Spark makes of the records."""
    step = RangeTally(stage, ("numbers",), GROUPS).step
    assert step.tally is not None
    rows = [
        (at, key, stage.value_serde.deserialize(value), at_ms)
        for at, (key, value, at_ms) in enumerate(records)
        if key is not None and (value is not None or not isinstance(step, AggregateStream))
    ]
    table = {
        "task": pa.array([0] * len(rows), pa.int32()),
        "timestamp": pa.array([at_ms for *_, at_ms in rows], pa.int64()),
        "topic": pa.array([0] * len(rows), pa.int32()),
        "partition": pa.array([PLACE.partition] * len(rows), pa.int32()),
        "offset": pa.array([at for at, *_ in rows], pa.int64()),
        "key": pa.array([key for _, key, *_ in rows], pa.binary()),
    }
    for at, one in enumerate(step.tally.columns):
        if one.column is not None:
            compute = computing(one.column)
            cells = [
                compute(StreamRecord(key=key.decode(), value=value, timestamp_ms=at_ms))
                for _, key, value, at_ms in rows
            ]
            table[f"i{at}"] = pa.array(cells, KINDS[one.column.type.name])
    return opened(combine(step, pa.table(table).to_batches()), step.tally)


def opened(batches: Any, tally: AnyTally) -> Combined:
    return unpacked((cell for one in batches for cell in one["parcel"].to_pylist()), tally)


@pytest.mark.parametrize("name", ["count", "rows", "windows", "in order"])
@pytest.mark.parametrize("serde", [STRING, LONG, INTEGER, BYTES], ids=lambda one: one.name)
@pytest.mark.parametrize("seed", range(6))
def test_sums_are_those_of_rows_behind_the_jvm(name: str, serde: Serde[Any], seed: int) -> None:
    chance, stage = random.Random(seed), stage_of(serde, name)
    records = random_records(chance, serde, chance.randint(1, 60))
    cuts = sorted({0, len(records), *(chance.randrange(len(records)) for _ in range(3))})
    batches = [as_read(records[start:end], start) for start, end in pairwise(cuts)]
    tally = RangeTally(stage, ("numbers",), GROUPS)
    assert tally.step.tally is not None
    parcels = list(tally(PLACE, iter(batches)))
    assert {task for one in parcels for task in one["task"].to_pylist()} <= {GROUPS[1]}
    assert opened(parcels, tally.step.tally) == behind_the_jvm(stage, records)


def test_where_nothing_is_added_up_nothing_comes_out() -> None:
    tally = RangeTally(stage_of(STRING, "count"), ("numbers",), GROUPS)
    assert list(tally(PLACE, [])) == []
    assert list(tally(PLACE, [as_read([(None, b"v", 5), (b"k", None, 6)], 0)])) == []


def test_parcels_are_for_the_task_of_the_partition_and_tell_the_topic_by_its_number() -> None:
    tally = RangeTally(stage_of(STRING, "count"), ("others", "numbers"), GROUPS)
    (batch,) = tally(PLACE, [as_read([(b"k", b"v", 5)], 40)])
    assert batch["task"].to_pylist() == [11]
    assert batch.schema.names == tally.schema.names
    found = unpacked(batch["parcel"].to_pylist(), tally.step.tally)  # type: ignore[arg-type]
    assert found == Combined([KeyTotal(b"k", 0, 5, 1)], 5, {(1, 1): 41})


@pytest.mark.parametrize(
    ("serde", "bad", "reason"),
    [
        (STRING, (b"k", b"\xff", 5), "the value is not of the string serde"),
        (STRING, (b"\xff", b"v", 5), "the key is not of the string serde"),
        (STRING, (b"k", b"v", -1), "its timestamp is -1"),
        (LONG, (b"k", b"1234", 5), "the value is not of the long serde"),
        (INTEGER, (b"k", b"12345678", 5), "the value is not of the integer serde"),
    ],
)
def test_the_first_record_that_cannot_be_read_is_told(
    serde: Serde[Any], bad: Read, reason: str
) -> None:
    tally = RangeTally(stage_of(serde, "count"), ("numbers",), GROUPS)
    good = (b"k", VALUES[serde.name][1], 5)
    with pytest.raises(UnreadableRecord) as told:
        list(tally(PLACE, [as_read([good], 0), as_read([good, bad, bad], 1)]))
    assert str(told.value).startswith(f"The record numbers-1@2 cannot be read: {reason}. Set ")
