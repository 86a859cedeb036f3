"""Records as rows: the value's fields beside where the record is from."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lake.columns.agreement import Agreement
from penstock.lake.columns.rows import RecordsAsRows, check_decoding, format_text
from penstock.lake.errors import LakeError, UndecodableRecord
from penstock.lake.progress import (
    dead_letters_of_batches,
    new_batches,
    remember_dead_letters,
    remember_rows,
    rows_of_batches,
)
from penstock.lake.query import plain_reason
from penstock.lake.spec import Merge, TableSpec, TopicDecoding, parse_partitioning
from penstock.lake.writing import layout
from penstock.schemas.dead_letters import cause_of

AT = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)


def records(*values: bytes | None) -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"k"] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": ["t"] * count,
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([AT] * count, pa.timestamp("us", "UTC")),
        }
    )


def row_maker_of(
    tmp_path: Path, decoding: TopicDecoding, lake_format: str = "parquet", partition_by: str = ""
) -> RecordsAsRows:
    spec = TableSpec(
        directory=str(tmp_path),
        format=lake_format,
        decoding=decoding,
        partition_by=parse_partitioning(partition_by),
    )
    return RecordsAsRows(decoding, Agreement(spec, query_id=uuid4().hex, batch_id=0))


def rows(tmp_path: Path, *values: bytes | None, **decoding: Any) -> list[dict[str, Any]]:
    maker = row_maker_of(tmp_path, TopicDecoding(**decoding))
    return [row for batch in maker.rows(iter([records(*values)])) for row in batch.to_pylist()]


def test_json_fields_stand_beside_the_records_own(tmp_path: Path) -> None:
    found = rows(tmp_path, b'{"id": 7, "key": "mine"}', value_format="json", key_format="string")
    assert found == [
        {
            "id": 7,
            "value_key": "mine",
            "key": "k",
            "topic": "t",
            "partition": 0,
            "offset": 0,
            "timestamp": AT,
        }
    ]


def test_values_stay_bytes_or_become_text(tmp_path: Path) -> None:
    assert rows(tmp_path, b"\xff")[0]["value"] == b"\xff"
    assert rows(tmp_path, b"x", value_format="string")[0]["value"] == "x"
    with pytest.raises(UndecodableRecord, match=r"offset 1 of t-0 .* value is not UTF-8"):
        rows(tmp_path, b"x", b"\xff", value_format="string")


def test_a_value_that_cannot_be_decoded_keeps_its_bytes(tmp_path: Path) -> None:
    found = rows(tmp_path, b'{"id": 1}', b"oops", value_format="json", on_error="null")
    assert [(row["id"], row["value_undecoded"]) for row in found] == [(1, None), (None, b"oops")]


def test_a_described_format_decodes_too(tmp_path: Path) -> None:
    from pyspark.sql import types as t

    from penstock.spark.formats import Json

    words = t.StructType([t.StructField("id", t.LongType())])
    more = {"value_format": "described", "described": format_text(Json(words))}
    found = rows(tmp_path, b'{"id": 1, "more": 2}', b"{", on_error="null", **more)
    assert [(row["id"], row["value_undecoded"]) for row in found] == [(1, None), (None, b"{")]
    with pytest.raises(UndecodableRecord, match="offset 1 of t-0"):
        rows(tmp_path, b'{"id": 1}', b"{", **more)


def test_records_that_cannot_be_decoded_are_set_aside_with_the_reason(tmp_path: Path) -> None:
    decoding = TopicDecoding(
        value_format="json", key_format="string", on_error="dead-letter", dead_letter_topic="dead"
    )
    maker = row_maker_of(tmp_path, decoding)
    given_ = records(b'{"id": 1}', b"oops", b'{"id": 3}')
    given_ = given_.set_column(0, "key", pa.array([b"a", b"b", b"\xff"], pa.binary()))
    found = [row for batch in maker.rows(iter([given_])) for row in batch.to_pylist()]
    assert [(row["id"], row["key"]) for row in found] == [(1, "a")]
    letters = [row for batch in maker.dead_letters() for row in batch.to_pylist()]
    causes = [cause_of((one["key"], one["value"]) for one in row["headers"]) for row in letters]
    assert [(row["topic"], row["key"], row["value"]) for row in letters] == [
        ("dead", b"b", b"oops"),
        ("dead", b"\xff", b'{"id": 3}'),
    ]
    assert [(one.origin, one.stage) for one in causes] == [
        ("t-0@1", "VALUE_CONVERTER"),
        ("t-0@2", "KEY_CONVERTER"),
    ]
    assert "not JSON" in str(causes[0].message)
    assert list(maker.dead_letters()) == []


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ({"on_error": "dead-letter", "value_format": "json"}, "belong together"),
        ({"dead_letter_topic": "dead", "value_format": "json"}, "belong together"),
    ],
)
def test_dead_letters_need_a_topic(choice: dict[str, str], sentence: str) -> None:
    with pytest.raises(LakeError, match=sentence):
        check_decoding(TopicDecoding(**choice))


@pytest.mark.parametrize("wrong", ["value_format", "key_format", "on_error"])
def test_choices_there_are_not_are_refused(wrong: str) -> None:
    with pytest.raises(LakeError, match=f"{wrong} is 'xml'; it must be one of"):
        check_decoding(TopicDecoding(**{wrong: "xml"}))


def test_a_spec_survives_its_journey() -> None:
    spec = TableSpec(
        directory="/t",
        format="delta",
        partition_by=parse_partitioning("a, date(ts) as day"),
        merge=Merge(on=("a", "b"), order_by="v"),
        decoding=TopicDecoding(value_format="json", source={"subscribe": "t"}),
        catalog={"uri": "x"},
    )
    assert TableSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize("words", ["a+b", "date(", "a, a", "date(x), date(y)"])
def test_partitionings_that_mean_nothing_are_refused(words: str) -> None:
    with pytest.raises(LakeError, match="partition_by"):
        parse_partitioning(words)


def test_only_delta_merges() -> None:
    with pytest.raises(LakeError, match="merge_on needs format delta"):
        TableSpec(directory="/t", format="parquet", merge=Merge(on=("a",)))


def test_days_are_counted_in_utc_before_1970_too() -> None:
    columns = parse_partitioning("date(at)")
    times = [datetime(1969, 12, 31, 23, tzinfo=UTC), AT, None]
    batch = pa.RecordBatch.from_pydict({"at": pa.array(times, pa.timestamp("us", "UTC"))})
    assert [values for values, _ in layout.split(batch, columns)] == [
        ("1969-12-31",),
        ("2026-01-31",),
        (None,),
    ]


@given(
    st.lists(
        st.tuples(st.sampled_from(["x", "y", None]), st.integers(0, 2) | st.none()), min_size=1
    )
)
def test_a_split_batch_has_each_row_once_in_its_partition(
    keys: list[tuple[str | None, int | None]],
) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "a": pa.array([a for a, _ in keys], pa.string()),
            "b": pa.array([b for _, b in keys], pa.int64()),
            "n": range(len(keys)),
        }
    )
    seen = []
    for values, part in layout.split(batch, parse_partitioning("a, b")):
        for row in part.to_pylist():
            assert values == tuple(None if v is None else str(v) for v in (row["a"], row["b"]))
            seen.append(row["n"])
    assert sorted(seen) == list(range(len(keys)))


def test_batches_are_told_once_with_their_lag(tmp_path: Path) -> None:
    spec = TableSpec(directory=str(tmp_path), format="delta")
    for batch_id in range(150):
        remember_rows(spec, batch_id, batch_id * 10)
    assert len(rows_of_batches(spec)) == 100
    report = {
        "batchId": 149,
        "batchDuration": 500,
        "sources": [{"endOffset": '{"t": {"0": 5}}', "latestOffset": '{"t": {"0": 9, "1": 2}}'}],
    }
    (seen,) = new_batches([report], rows_of_batches(spec), {}, after_batch_id=148)
    assert (seen.rows, seen.rows_per_s, seen.lag) == (1490, 2980, 6)
    assert new_batches([report], rows_of_batches(spec), {}, after_batch_id=149) == []


def test_a_batch_of_dead_letters_alone_is_told_too(tmp_path: Path) -> None:
    spec = TableSpec(directory=str(tmp_path), format="delta")
    remember_dead_letters(spec, 3, 2)
    report = {"batchId": 3, "batchDuration": 500, "sources": [{}]}
    (seen,) = new_batches([report], {}, dead_letters_of_batches(spec), after_batch_id=2)
    assert (seen.rows, seen.dead_letters) == (0, 2)


def test_our_sentence_is_found_in_a_stack_trace() -> None:
    trace = "Traceback:\n  x\npenstock.lake.errors.LakeError: the disk is full\n\n\tat java.lang"
    assert plain_reason(trace) == "the disk is full"
    assert plain_reason("something else") == "something else"
