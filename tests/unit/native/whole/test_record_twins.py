"""Reading many records in compiled code and in numpy: the same parts, or none at all."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptRecord
from penstock.native import NativeModule
from penstock.records.batch import HEADER_BYTES, build_batch
from penstock.records.record import Record
from penstock.spark.columns.batch_walk import Span
from penstock.spark.columns.record_fields import Fields, read_fields, read_natively
from penstock.spark.columns.record_starts import Octets, record_starts

Drawn = list[list[Any]]  # Batches of records: time, key, value and headers of each.

parts = st.one_of(st.none(), st.binary(max_size=5), st.binary(min_size=60, max_size=140))
headers = st.lists(st.tuples(st.text(max_size=3), parts), max_size=2)
batches = st.lists(
    st.lists(
        st.tuples(st.integers(-(2**40), 2**40), parts, parts, headers), min_size=1, max_size=6
    ),
    min_size=1,
    max_size=4,
)


def joined(drawn: Drawn) -> bytes:
    return b"".join(payload(records) for records in drawn)


def payload(records: list[Any]) -> bytes:
    made = [Record(at, *one[:3], tuple(one[3])) for at, one in enumerate(records)]
    return bytes(build_batch(made)[HEADER_BYTES:])


def spans_of(drawn: Drawn) -> list[Span]:
    spans, at = [], 0
    for number, records in enumerate(drawn):
        end = at + len(payload(records))
        count = len(records)
        stamp = 99 if number % 2 else None
        spans.append(Span(at, end, count, count - 1, 10 * number, 1000, stamp, memoryview(b""), 0))
        at = end
    return spans


def twins(octets: Octets, spans: list[Span]) -> Fields | None:
    data = memoryview(octets.tobytes())
    try:
        return read_fields(octets, spans, record_starts(data, octets, spans))
    except CorruptRecord:
        return None


def as_lists(found: Fields) -> dict[str, list[int]]:
    return {one.name: getattr(found, one.name).tolist() for one in fields(found)}


@given(drawn=batches)
def test_whole_batches_have_the_same_parts(native: NativeModule, drawn: Drawn) -> None:
    octets = np.frombuffer(joined(drawn), np.uint8)
    spans = spans_of(drawn)
    ours, theirs = read_natively(octets, spans, native=native), twins(octets, spans)
    assert ours is not None and theirs is not None
    assert as_lists(ours) == as_lists(theirs)


@given(drawn=batches, data=st.data())
def test_broken_bytes_are_left_to_the_twins(
    native: NativeModule, drawn: Drawn, data: st.DataObject
) -> None:
    whole = bytearray(joined(drawn))
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=3)):
        whole[at] = data.draw(st.integers(0, 255))
    octets = np.frombuffer(bytes(whole), np.uint8)
    spans = spans_of(drawn)
    ours = read_natively(octets, spans, native=native)
    if ours is not None:
        theirs = twins(octets, spans)
        assert theirs is not None and as_lists(ours) == as_lists(theirs)


@pytest.mark.parametrize(
    "change", [{"end": 10**6}, {"start": -1}, {"record_count": 3}, {"last_offset_delta": 0}]
)
def test_a_batch_that_says_something_else_than_its_bytes_is_left_to_the_twins(
    native: NativeModule, change: dict[str, int]
) -> None:
    drawn: Drawn = [[(0, b"key", b"value", []), (1, None, b"value", [])]]
    octets = np.frombuffer(joined(drawn), np.uint8)
    (span,) = spans_of(drawn)
    assert read_natively(octets, [span], native=native) is not None
    assert read_natively(octets, [span._replace(**change)], native=native) is None


def test_without_compiled_code_the_twins_are_asked() -> None:
    assert read_natively(np.zeros(1, np.uint8), [], native=None) is None
