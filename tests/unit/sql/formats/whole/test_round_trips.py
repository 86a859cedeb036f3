"""Every format reads what it wrote, and never fails on bytes of others but by its own error."""

from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.catalog.relations import DataFormat, RelationColumn
from penstock.sql.formats.codec import FormatCodec, FormatMisfit
from penstock.sql.formats.serdes import codec_of
from penstock.sql.testing.memory_schemas import MemorySchemas
from penstock.sql.types.kinds import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayOf,
    DataType,
    DecimalOf,
    MapOf,
    StructOf,
)

text = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=10)
millis = st.integers(0, 999).map(lambda n: n * 1000)
VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INTEGER: st.integers(-(1 << 31), (1 << 31) - 1),
    BIGINT: st.integers(-(1 << 63), (1 << 63) - 1),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    STRING: text,
    BYTES: st.binary(max_size=8),
    DecimalOf(6, 2): st.decimals(-9999, 9999, places=2),
    DATE: st.dates(),
    TIME: st.builds(lambda t, m: t.replace(microsecond=m), st.times(), millis),
    TIMESTAMP: st.builds(
        lambda t, m: t.replace(microsecond=m),
        st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
        millis,
    ),
    ArrayOf(INTEGER): st.lists(st.none() | st.integers(-5, 5), max_size=4),
    MapOf(STRING, BIGINT): st.dictionaries(text, st.integers(-5, 5), max_size=4),
    StructOf((("X", INTEGER), ("Y", STRING))): st.fixed_dictionaries(
        {"X": st.none() | st.integers(-5, 5), "Y": st.none() | text}
    ),
}
NESTED = (ArrayOf, MapOf, StructOf)
FLAT = {kind: made for kind, made in VALUES.items() if not isinstance(kind, NESTED)}


def codec(name: str, kinds: list[DataType], **more: Any) -> FormatCodec:
    columns = [RelationColumn(f"C{at}", kind) for at, kind in enumerate(kinds)]
    return codec_of(DataFormat(name, **more), columns, "t-value", MemorySchemas())


@pytest.mark.parametrize("name", ["JSON", "AVRO", "JSON_SR"])
@given(row=st.tuples(*(st.none() | made for made in VALUES.values())))
def test_all_types_and_nulls_go_there_and_back(name: str, row: tuple[Any, ...]) -> None:
    made = codec(name, list(VALUES))
    data = made.write(row)
    assert data is not None
    assert made.read(data) == list(row)


@given(row=st.tuples(*(made if k == STRING else st.none() | made for k, made in FLAT.items())))
def test_a_line_of_values_goes_there_and_back(row: tuple[Any, ...]) -> None:
    made = codec("DELIMITED", list(FLAT))
    wanted = [None if value in ("", b"") else value for value in row]  # Empty is NULL.
    data = made.write(row)
    assert data is not None
    assert made.read(data) == wanted


@pytest.mark.parametrize("kind", [INTEGER, BIGINT, DOUBLE, STRING, BYTES])
@given(data=st.data())
def test_a_bare_value_goes_there_and_back(kind: DataType, data: st.DataObject) -> None:
    made = codec("KAFKA", [kind])
    value = data.draw(VALUES[kind])
    written = made.write([value])
    assert written is not None
    assert made.read(written) == [value]
    assert made.write([None]) is None


@pytest.mark.parametrize("name", ["JSON", "AVRO", "JSON_SR", "PROTOBUF", "DELIMITED", "KAFKA"])
@given(data=st.binary(max_size=60) | st.binary(max_size=40).map(lambda rest: b"\0\0\0\0\1" + rest))
def test_any_bytes_are_read_or_are_a_misfit(name: str, data: bytes) -> None:
    kinds: list[DataType] = [INTEGER] if name in ("KAFKA", "DELIMITED") else [INTEGER, STRING]
    with suppress(FormatMisfit):
        codec(name, kinds).read(data)


def test_exact_numbers_keep_their_zeros() -> None:
    made = codec("JSON", [DecimalOf(6, 2)])
    assert made.write([Decimal("12.50")]) == b'{"C0":12.50}'
    assert str(made.read(b'{"C0": 12.5}')[0]) == "12.50"


def test_a_moment_of_another_type_is_a_misfit() -> None:
    made = codec("JSON", [DATE, TIME])
    assert made.read(b'{"C0": 0, "C1": 0}') == [date(1970, 1, 1), time(0, 0)]
    with pytest.raises(FormatMisfit):
        made.read(b'{"C0": 0, "C1": 86400000}')
    with pytest.raises(FormatMisfit):
        made.read(b'{"C0": 99999999999999, "C1": 0}')
