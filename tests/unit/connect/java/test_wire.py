"""What is sent to Java and what comes back, byte for byte."""

import decimal
import struct
from datetime import UTC, date, datetime, time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.errors.kinds import DataError
from penstock.connect.java.wire import JavaRecordReader, decode, encode
from penstock.connect.values.logical import (
    DATE_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    decimal_schema,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
    max_leaves=10,
)  # fmt: skip


@given(VALUES)
def test_a_value_comes_back_as_it_went(value: Any) -> None:
    assert decode(encode(value)) == value


def test_what_java_cannot_be_sent_is_refused() -> None:
    with pytest.raises(DataError, match="cannot be sent"):
        encode(object())


def text(one: str | None) -> bytes:
    return encode(one)


def plain_schema(schema: Any) -> bytes:
    """A schema without parts, as the bridge writes a new one."""
    parts = [struct.pack(">i", -2), text(schema.type), b"\x01" if schema.optional else b"\x00"]
    parts += [encode(one) for one in (schema.name, schema.version, schema.doc)]
    return b"".join([*parts, encode(dict(schema.parameters)), encode(None)])


def record(schema: bytes, value: bytes) -> bytes:
    """A record with a value alone."""
    none = struct.pack(">i", -1)
    before = [encode({"p": 1}), encode({"o": 2}), text("t"), encode(None), encode(7)]
    return b"\x01" + b"".join([*before, none, encode(None), schema, value, struct.pack(">i", 0)])


def test_dates_and_decimals_are_what_their_schemas_say() -> None:
    reader = JavaRecordReader()
    cases = [
        (DATE_SCHEMA, b"t" + struct.pack(">q", 86_400_000 * 3), date(1970, 1, 4)),
        (TIME_SCHEMA, b"t" + struct.pack(">q", 1500), time(0, 0, 1, 500_000)),
        (TIMESTAMP_SCHEMA, b"t" + struct.pack(">q", 0), datetime(1970, 1, 1, tzinfo=UTC)),
        (decimal_schema(2), b"n" + struct.pack(">ii", 2, 1) + b"\xff", decimal.Decimal("-0.01")),
    ]  # fmt: skip
    for schema, value, expected in cases:
        (found,) = reader.records(b"\x00" + record(plain_schema(schema), value) + b"\x00")
        assert found.value == expected and found.value_schema == schema
        assert (found.topic, found.partition, found.timestamp) == ("t", None, 7)
        assert (found.source_partition, found.source_offset) == ({"p": 1}, {"o": 2})


def test_a_schema_is_told_once_and_forgotten_when_java_says_so() -> None:
    reader = JavaRecordReader()
    first = record(plain_schema(DATE_SCHEMA), encode(None))
    again = record(struct.pack(">i", 0), encode(None))
    one, two = reader.records(b"\x00" + first + again + b"\x00")
    assert one.value_schema is two.value_schema
    (three,) = reader.records(b"\x01" + record(plain_schema(TIME_SCHEMA), encode(None)) + b"\x00")
    assert three.value_schema == TIME_SCHEMA
    (four,) = reader.records(b"\x00" + again + b"\x00")
    assert four.value_schema == TIME_SCHEMA
