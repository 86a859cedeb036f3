"""Keys and values are written as Kafka writes them, windowed keys too."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.streams import (
    BYTES,
    DOUBLE,
    INTEGER,
    JSON,
    LONG,
    STRING,
    Serde,
    SerdeError,
    TimeWindow,
    Windowed,
    session_windowed,
    time_windowed,
)

VALUES: list[tuple[Serde[Any], st.SearchStrategy[Any]]] = [
    (STRING, st.text()),
    (LONG, st.integers(-(2**63), 2**63 - 1)),
    (INTEGER, st.integers(-(2**31), 2**31 - 1)),
    (DOUBLE, st.floats(allow_nan=False)),
    (BYTES, st.binary()),
    (JSON, st.recursive(st.integers() | st.text() | st.booleans(), st.lists, max_leaves=5)),
]


@given(st.data())
def test_what_a_serde_writes_it_reads(data: st.DataObject) -> None:
    serde, values = data.draw(st.sampled_from(VALUES))
    value = data.draw(values)
    assert serde.deserialize(serde.serialize(value)) == value


@pytest.mark.parametrize("serde", [serde for serde, _ in VALUES], ids=lambda serde: serde.name)
def test_none_is_a_tombstone_in_every_serde(serde: Serde[Any]) -> None:
    assert serde.serialize(None) is None
    assert serde.deserialize(None) is None


@given(st.text(), st.integers(0, 2**40), st.integers(0, 2**40))
def test_a_windowed_key_is_the_key_and_its_times(key: str, start_ms: int, length_ms: int) -> None:
    timed = time_windowed(STRING, size_ms=7)
    of_time = Windowed(key, TimeWindow(start_ms, start_ms + 7))
    assert timed.serialize(of_time) == key.encode() + struct.pack(">q", start_ms)
    assert timed.deserialize(timed.serialize(of_time)) == of_time
    session = session_windowed(STRING)
    end_ms = start_ms + length_ms
    of_session = Windowed(key, TimeWindow(start_ms, end_ms))
    assert session.serialize(of_session) == key.encode() + struct.pack(">qq", end_ms, start_ms)
    assert session.deserialize(session.serialize(of_session)) == of_session


def test_a_misfit_is_refused_with_the_name_of_the_serde() -> None:
    with pytest.raises(SerdeError, match="long serde"):
        LONG.serialize("five")  # type: ignore[arg-type]
    with pytest.raises(SerdeError, match="JSON serde"):
        JSON.deserialize(b"{")
    with pytest.raises(SerdeError, match="string serde"):
        STRING.serialize(5)  # type: ignore[arg-type]
