"""JSON values into columns: what is known leads, what is new is added, what is wrong is named."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lake.errors import IncompatibleSchema, LakeError, UndecodableRecord
from penstock.lake.json_values import GrowingJson, undecodable_rows


def complain(at: int, reason: str) -> LakeError:
    return UndecodableRecord("t", 0, at, reason)


def decoded(*values: object, known: pa.Schema | None = None) -> list[Any]:
    decoder = GrowingJson(known or pa.schema([]))
    lines = [v if isinstance(v, bytes | None) else json.dumps(v).encode() for v in values]
    return decoder.decode(pa.array(lines, pa.binary()), complain).to_pylist()


def test_fields_become_columns_and_a_tombstone_a_row_of_nulls() -> None:
    rows = decoded({"a": 1, "b": "x"}, None, {"a": 2})
    assert rows == [{"a": 1, "b": "x"}, {"a": None, "b": None}, {"a": 2, "b": None}]


def test_what_looks_like_a_time_stays_text() -> None:
    rows = decoded({"at": "2026-01-01T00:00:00", "in": {"at": "2026-01-01 00:00:00"}})
    assert rows == [{"at": "2026-01-01T00:00:00", "in": {"at": "2026-01-01 00:00:00"}}]


def test_a_known_double_takes_whole_numbers_and_a_known_long_widens() -> None:
    assert decoded({"n": 1}, known=pa.schema([("n", pa.float64())])) == [{"n": 1.0}]
    assert decoded({"n": 1.5}, {"n": 2}, known=pa.schema([("n", pa.int64())])) == [
        {"n": 1.5},
        {"n": 2.0},
    ]


def test_batches_of_one_task_keep_the_fields_of_those_before() -> None:
    decoder = GrowingJson(pa.schema([]))
    decoder.decode(pa.array([b'{"a": 1}']), complain)
    second = decoder.decode(pa.array([b'{"b": [true]}']), complain)
    assert second.to_pylist() == [{"a": None, "b": [True]}]


def test_values_over_several_lines_are_taken() -> None:
    assert decoded(b'{\n "a":\n 1\n}', b'{"a": 2}') == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (b"5", "a number, not a JSON object"),
        (b"[1]", "an array, not a JSON object"),
        (b'"x"', "a string, not a JSON object"),
        (b'{"a": 1}{"a": 2}', "not JSON"),
        (b'{"a": 1}\n{"a": 2}', "not JSON"),
        (b"\xff\xfe", "not JSON"),
    ],
)
def test_the_record_that_is_no_json_object_is_named(value: bytes, reason: str) -> None:
    with pytest.raises(UndecodableRecord, match=reason) as error:
        decoded({"a": 1}, value, {"a": 3})
    assert "offset 1 of t-0" in str(error.value)


def test_a_field_that_changes_its_kind_names_column_types_and_record() -> None:
    with pytest.raises(IncompatibleSchema, match=r"offset 1 of t-0 brings string") as error:
        decoded({"a": {"b": 1}}, {"a": {"b": "one"}})
    assert error.value.column == "a.b"
    with pytest.raises(IncompatibleSchema, match=r"column a is int64 .* offset 0 of t-0"):
        decoded({"a": "one"}, known=pa.schema([("a", pa.int64())]))


def test_bad_values_are_found_with_their_reasons() -> None:
    values = pa.array([b'{"a": 1}', b"oops", None, b"7"])
    found = undecodable_rows(values)
    assert list(found) == [1, 3]
    assert "not JSON" in found[1]
    assert "a number" in found[3]


def test_a_blank_value_does_not_hide_one_with_two_objects() -> None:
    with pytest.raises(UndecodableRecord, match="offset 0 of t-0"):
        decoded(b'{"a": 1}{"a": 2}', b" ")


def test_what_a_bad_value_brings_is_no_field_of_the_table() -> None:
    decoder = GrowingJson(pa.schema([]))
    with pytest.raises(UndecodableRecord):
        decoder.decode(pa.array([b'{"a": 1}{"b": 2}']), complain)
    assert decoder.decode(pa.array([b'{"c": 3}']), complain).to_pylist() == [{"c": 3}]


scalars = st.one_of(st.none(), st.integers(-(2**50), 2**50), st.text(), st.booleans())
objects = st.dictionaries(
    st.sampled_from(["a", "b", "c"]), scalars | st.lists(st.integers(0, 9), max_size=3), max_size=3
)


@given(st.lists(objects, min_size=1, max_size=8))
def test_every_value_comes_back_or_the_reason_is_told(values: list[dict[str, Any]]) -> None:
    try:
        rows = decoded(*values)
    except (IncompatibleSchema, UndecodableRecord):
        kinds: dict[str, set[type]] = {}
        for value in values:
            for name, field in value.items():
                kinds.setdefault(name, set()).add(type(field))
        assert any(len(found - {type(None)}) > 1 for found in kinds.values())
        return
    assert len(rows) == len(values)
    for row, value in zip(rows, values, strict=True):
        # An empty list of no known type is no column yet.
        assert {k: v for k, v in row.items() if v is not None} == {
            k: v for k, v in value.items() if v is not None and k in row
        }
