"""JSON values into columns: what is known leads, what is new is added, what is wrong is named."""

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lake.columns import json_values
from penstock.lake.columns.agreement import Agreement, remember_columns
from penstock.lake.columns.json_values import GrowingJson, JsonRows
from penstock.lake.columns.rules import AgreedColumns
from penstock.lake.spec import TableSpec


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


class Landing:
    """The tables that these tests decode towards, each in a directory of its own."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def decoder(
        self, known: pa.Schema | None = None, lake_format: str = "delta", **more: Any
    ) -> GrowingJson:
        spec = TableSpec(directory=str(self._place / uuid4().hex), format=lake_format)
        if known is not None:
            remember_columns(spec, AgreedColumns(schema=known))
        return GrowingJson(Agreement(spec, query_id="q", batch_id=0), **more)

    def decode(self, *values: object, **more: Any) -> JsonRows:
        return self.decoder(**more).decode(lines(*values))


def lines(*values: object) -> pa.Array:
    given_ = [v if isinstance(v, bytes | None) else json.dumps(v).encode() for v in values]
    return pa.array(given_, pa.binary())


def rows_of(found: JsonRows) -> list[dict[str, Any]]:
    columns = [array.to_pylist() for array in found.columns.values()]
    return [dict(zip(found.columns, row, strict=True)) for row in zip(*columns, strict=True)]


@pytest.fixture
def landing(place: Path) -> Landing:
    return Landing(place)


def test_fields_become_columns_and_a_tombstone_a_row_of_nulls(landing: Landing) -> None:
    rows = rows_of(landing.decode({"a": 1, "b": "x"}, None, {"a": 2}))
    assert rows == [{"a": 1, "b": "x"}, {"a": None, "b": None}, {"a": 2, "b": None}]


def test_what_looks_like_a_time_stays_text(landing: Landing) -> None:
    record = {"at": "2026-01-01T00:00:00", "in": {"at": "2026-01-01 00:00:00"}}
    assert rows_of(landing.decode(record)) == [record]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01 00:00:00+00:00"),
        ("2026-01-01T02:00:00+02:00", "2026-01-01 00:00:00+00:00"),
        ("2026-01-01 00:00:00.5", "2026-01-01 00:00:00.500000+00:00"),
        ("2026-01-01", "2026-01-01 00:00:00+00:00"),
    ],
)
def test_a_column_of_times_takes_every_form_of_them(
    landing: Landing, text: str, moment: str
) -> None:
    known = pa.schema([("at", pa.timestamp("us", "UTC"))])
    found = landing.decode({"at": text}, {"at": "noon"}, {"at": 5}, known=known)
    assert [str(row["at"]) for row in rows_of(found)] == [moment, "None", "None"]
    assert list(found.flaws) == [1, 2]


def test_a_known_double_takes_whole_numbers_and_a_known_long_widens(landing: Landing) -> None:
    known = pa.schema([("n", pa.float64())])
    assert rows_of(landing.decode({"n": 1}, known=known)) == [{"n": 1.0}]
    known = pa.schema([("n", pa.int64()), ("m", pa.int32())])
    found = landing.decode({"n": 1.5, "m": 1}, {"n": 2}, known=known)
    assert rows_of(found) == [{"n": 1.5, "m": 1}, {"n": 2.0, "m": None}]
    assert found.columns["m"].type == pa.int32()  # Only what must widen does.


def test_batches_of_one_task_keep_the_fields_of_those_before(landing: Landing) -> None:
    decoder = landing.decoder()
    decoder.decode(lines({"a": 1}))
    assert rows_of(decoder.decode(lines({"b": [True]}))) == [{"a": None, "b": [True]}]


def test_values_over_several_lines_are_taken(landing: Landing) -> None:
    assert rows_of(landing.decode(b'{\n "a":\n 1\n}', b'{"a": 2}')) == [{"a": 1}, {"a": 2}]


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
        (b'{"a": 1, "b": "\xff"}', "not JSON"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"a": 1, "d": ' + b"[" * 31 + b"1" + b"]" * 31 + b"}", "at most 30 levels deep"),
        (b'{"a": "x"}', "column a is int64 in the table and the record brings string"),
        (b'{"a": {"b": 1}}', "column a is int64 in the table and the record brings struct"),
        (b'{"a": true}', "column a is int64 in the table and the record brings bool"),
        (b'{"a": 123456789012345678901}', "brings a whole number beyond 64 bits"),
        (b'{"a": 1e999}', "beyond the range of doubles"),
        (b'{"a": 1, "l": [1, "x"]}', "column l.element is int64 .* brings string"),
        (b'{"a": 1, "A": 2}', "the field A cannot be a column: it differs from a only in case"),
        (b'{"a": 1, "a": 2}', "the field a cannot be a column: the record has it twice"),
        (b'{"a": 1, "o": {"x": 1, "x": 2}}', "the field o.x cannot be a column"),
        (b'{"a": 1, "o": {"x": 1, "X": 2}}', "the field o.X cannot be a column"),
        (b'{"a": 1, "": 2}', r"the field \(empty\) cannot be a column: a column needs a name"),
        (b'{"a": 1, "n\\u0000": 2}', "not text that a file can hold"),
        (b'{"a": 1, "s": "\\ud800"}', "half of a surrogate pair"),
        (b'{"a": 1, "key": 2, "value_key": 3}', "has the same column value_key"),
    ],
)
def test_only_the_record_that_does_not_fit_is_named(
    landing: Landing, value: bytes, reason: str
) -> None:
    found = landing.decode({"a": 1}, value, {"a": 3})
    assert [row["a"] for row in rows_of(found)] == [1, None, 3]
    assert list(found.columns) == ["a"]
    assert list(found.flaws) == [1]
    assert re.search(reason, found.flaws[1].reason), found.flaws[1].reason


def test_names_that_differ_only_in_case_are_one_column(landing: Landing) -> None:
    found = landing.decode({"id": 1, "in": {"x": 1}}, {"ID": 2, "In": {"X": 2}}, {"Id": 3})
    assert not found.flaws
    assert rows_of(found) == [
        {"id": 1, "in": {"x": 1}},
        {"id": 2, "in": {"x": 2}},
        {"id": 3, "in": None},
    ]


def test_one_odd_record_among_many_is_found_and_the_others_are_read_together(
    landing: Landing,
) -> None:
    records = [{"a": n} for n in range(1000)]
    found = landing.decode(*records[:700], {"a": "x"}, *records[701:], {"b": 1.5})
    assert list(found.flaws) == [700]
    assert [row["a"] for row in rows_of(found)] == [*range(700), None, *range(701, 1000), None]
    assert found.columns["b"].null_count == 1000


def test_a_null_under_another_case_hides_no_value(landing: Landing) -> None:
    known = pa.schema([("a", pa.int64()), ("o", pa.struct([("x", pa.int64())]))])
    found = landing.decode({"a": 1, "A": None, "o": {"x": 2, "X": None}}, known=known)
    assert rows_of(found) == [{"a": 1, "o": {"x": 2}}]


def test_what_fits_of_a_record_can_be_kept(landing: Landing) -> None:
    found = landing.decode({"a": 1, "b": 1}, {"a": "x", "b": 2, "c": 3}, keeps_what_fits=True)
    assert rows_of(found) == [{"a": 1, "b": 1, "c": None}, {"a": None, "b": 2, "c": 3}]
    assert list(found.flaws) == [1]


def test_what_a_bad_record_brings_is_no_field_of_the_table(landing: Landing) -> None:
    found = landing.decode(b'{"a": 1}{"b": 2}', {"a": "x"}, {"a": 1, "c": 3}, {"d": 4})
    assert list(found.columns) == ["a", "d"]
    assert list(found.flaws) == [0, 2]


def test_a_blank_value_does_not_hide_one_with_two_objects(landing: Landing) -> None:
    assert list(landing.decode(b'{"a": 1}{"a": 2}', b" ").flaws) == [0, 1]


@pytest.mark.parametrize("order", [1, -1])
def test_no_digit_of_a_whole_number_is_lost(landing: Landing, order: int) -> None:
    """Beside a number with a point, Arrow's reader would round it."""
    found = landing.decode(*[{"n": 2**53 + 1}, {"n": 1.5}][::order])
    assert [row["n"] for row in rows_of(found)] == [[2**53 + 1, None], [1.5, None]][order < 0]
    assert list(found.flaws) == [1]


def test_iceberg_keeps_whole_numbers_and_takes_those_with_a_point_that_are_whole(
    landing: Landing,
) -> None:
    known = pa.schema([("n", pa.int64())])
    found = landing.decode({"n": 1.5}, {"n": 2.0}, known=known, lake_format="iceberg")
    assert rows_of(found) == [{"n": None}, {"n": 2}]
    assert "Iceberg does not promote that" in found.flaws[0].reason


names = st.sampled_from(["a", "A", "b", "c", "", "key"])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3),
    st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(names, values, max_size=4)


def test_a_list_that_begins_with_null_keeps_its_items(place: Path) -> None:
    found = Landing(place).decode({"a": [None, False]}, {"a": [1]}, {"a": []})
    assert rows_of(found)[0] == {"a": [None, False]}


@pytest.mark.parametrize("last", [{"a": False}, {"a": "x"}])
def test_an_empty_list_stays_one_although_an_odd_record_comes_after_it(
    place: Path, last: dict[str, Any]
) -> None:
    with patch.object(json_values, "_ALONE_MAX", 1):
        found = Landing(place).decode({"a": []}, {"a": [False]}, last)
    assert rows_of(found)[:2] == [{"a": []}, {"a": [False]}]


@given(st.lists(objects, min_size=1, max_size=8), st.sampled_from(["delta", "iceberg"]))
def test_together_and_one_by_one_are_the_same(
    place: Path, records: list[dict[str, Any]], lake_format: str
) -> None:
    with patch.object(json_values, "_ALONE_MAX", 1):
        together = Landing(place).decode(*records, lake_format=lake_format)
    alone = Landing(place).decoder(lake_format=lake_format)
    each = alone._each(lines(*records))
    # What is empty may be null: its type was not known yet where it was read.
    assert [meaning(row) for row in rows_of(together)] == [meaning(row) for row in rows_of(each)]
    assert list(together.flaws) == list(each.flaws)
    assert {n: a.type for n, a in together.columns.items()} == {
        n: a.type for n, a in each.columns.items()
    }


@given(st.lists(objects, min_size=1, max_size=8))
def test_every_value_comes_back_or_the_record_is_named(
    place: Path, records: list[dict[str, Any]]
) -> None:
    found = Landing(place).decode(*records)
    rows = rows_of(found) or [{}] * len(records)
    for number, (row, record) in enumerate(zip(rows, records, strict=True)):
        if number not in found.flaws:
            assert meaning(row) == meaning(
                {"value_key" if k == "key" else k: v for k, v in record.items()}
            )


def meaning(value: Any) -> Any:
    """Without what says nothing: nulls, emptiness, the case of names."""
    if isinstance(value, dict):
        inner = [(k.lower(), meaning(v)) for k, v in value.items()]
        return {k: v for k, v in inner if v is not None} or None
    if isinstance(value, list):
        found = [meaning(v) for v in value]
        return found if any(one is not None for one in found) else None
    return value
