"""Types of PostgreSQL as schemas, and texts of theirs as values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.changes.decimals import DecimalMode
from penstock.connect.connectors.postgres.column_types import (
    BinaryMode,
    PgType,
    TimeMode,
    ValueModes,
    array_items,
    codec_of,
)
from penstock.connect.errors.kinds import DataError
from penstock.connect.values.schema import SchemaType

NUMERIC = PgType(oid=1700, name="numeric")
MODES = ValueModes()


@given(st.lists(st.none() | st.text(max_size=6), max_size=6))
def test_arrays_are_taken_apart_as_postgresql_puts_them_together(items: list[str | None]) -> None:
    def quoted(item: str | None) -> str:
        if item is None:
            return "NULL"
        escaped = item.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'

    assert array_items("{" + ",".join(map(quoted, items)) + "}") == items


def test_arrays_with_bounds_and_without_quotes() -> None:
    assert array_items("[2:4]={a,b c,null}") == ["a", "b c", None]
    for text in ("{{1,2},{3,4}}", "{a", '{"a"b}'):
        with pytest.raises(DataError):
            array_items(text)


def test_a_decimal_has_the_scale_of_its_column_or_its_own() -> None:
    modifier = (10 << 16 | 3) + 4
    codec = codec_of(NUMERIC, modifier, MODES)
    assert codec.schema.parameters == {"scale": "3", "connect.decimal.precision": "10"}
    assert str(codec.read("1.5")) == "1.500"
    free = codec_of(NUMERIC, -1, MODES)
    assert free.schema.name == "io.debezium.data.VariableScaleDecimal"
    assert free.read("-0.25").values == (2, b"\xe7")
    with pytest.raises(DataError):
        free.read("NaN")
    as_text = codec_of(NUMERIC, modifier, ValueModes(decimals=DecimalMode.STRING))
    assert as_text.read("NaN") == "NaN"


def test_modes_choose_other_schemas() -> None:
    stamp = PgType(oid=1114, name="timestamp")
    connect = codec_of(stamp, -1, ValueModes(times=TimeMode.CONNECT))
    assert connect.schema.name == "org.apache.kafka.connect.data.Timestamp"
    binary = codec_of(PgType(oid=17, name="bytea"), -1, ValueModes(binary=BinaryMode.BASE64))
    assert binary.read("\\x0102") == "AQI="


def test_domains_enumerations_and_strangers() -> None:
    domain = PgType(oid=9, name="cents", origin=NUMERIC, modifier=(8 << 16 | 2) + 4)
    assert str(codec_of(domain, -1, MODES).read("1")) == "1.00"
    mood = codec_of(PgType(oid=8, name="mood", labels=("sad", "happy")), -1, MODES)
    assert mood.schema.parameters == {"allowed": "sad,happy"}
    stranger = codec_of(PgType(oid=7, name="tsvector"), -1, MODES)
    assert (stranger.schema.type, stranger.read("'a'")) == (SchemaType.STRING, "'a'")
