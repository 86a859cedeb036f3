"""Values of MariaDB and MySQL that the two readers give differently, or that Debezium chooses."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from penstock.connect.connectors.changes.decimals import DecimalMode
from penstock.connect.connectors.changes.settings import BinaryMode, TimeMode
from penstock.connect.connectors.mysql.column_types import ColumnFacts, codec_of
from penstock.connect.connectors.mysql.settings import MyValueModes, UnsignedMode
from penstock.connect.errors.kinds import DataError
from penstock.connect.values.schema import Schema, SchemaType


def read(kind: str, value: Any, modes: MyValueModes | None = None, **more: Any) -> Any:
    facts = ColumnFacts(name="c", kind=kind, **more)
    return codec_of(facts, modes or MyValueModes()).read(value)


def schema(kind: str, **more: Any) -> Schema:
    return codec_of(ColumnFacts(name="c", kind=kind, **more), MyValueModes()).schema


def test_bits_are_little_endian_whoever_read_them() -> None:
    assert read("bit", "1000000011", precision=10) == b"\x03\x02"
    assert read("bit", b"\x02\x03", precision=10) == b"\x03\x02"
    assert (read("bit", "1", precision=1), read("bit", b"\x00", precision=1)) == (True, False)


def test_a_set_has_its_labels_in_their_order() -> None:
    labels = ("a", "b", "c")
    assert read("set", {"c", "a"}, labels=labels) == "a,c"
    assert read("set", "a,c", labels=labels) == "a,c"
    assert schema("set", labels=labels).parameters == {"allowed": "a,b,c"}


def test_large_unsigned_numbers_are_longs_or_decimals() -> None:
    assert read("bigint", 2**64 - 1, unsigned=True) == -1
    precise = MyValueModes(unsigned=UnsignedMode.PRECISE)
    assert read("bigint", 2**64 - 1, precise, unsigned=True) == Decimal(2**64 - 1)
    assert schema("int", unsigned=True).type is SchemaType.INT64


def test_small_decimals_have_no_exponent_as_text() -> None:
    texts = MyValueModes(decimals=DecimalMode.STRING)
    assert read("decimal", Decimal("0E-10"), texts, precision=12, scale=10) == "0.0000000000"


def test_binary_is_padded_and_travels_as_it_is_wanted() -> None:
    assert read("binary", b"\x01", precision=3) == b"\x01\x00\x00"
    assert read("binary", b"\xff\x00", MyValueModes(binary=BinaryMode.HEX)) == "ff00"
    assert read("binary", b"\xff\x00", MyValueModes(binary=BinaryMode.BASE64)) == "/wA="


def test_a_time_beyond_a_day_is_no_time_of_day() -> None:
    long = timedelta(hours=30)
    assert read("time", long) == 30 * 3_600_000_000
    with pytest.raises(DataError, match="no time of day"):
        read("time", long, MyValueModes(times=TimeMode.CONNECT))


def test_json_of_the_log_is_written_as_text() -> None:
    assert read("json", {b"a": [b"x", 1, None, Decimal("1.5")]}) == '{"a": ["x", 1, null, "1.5"]}'
    assert read("json", '{"a":1}') == '{"a":1}'


def test_text_in_an_unknown_character_set_is_refused() -> None:
    with pytest.raises(DataError, match="character set"):
        read("text", b"\xff")
