"""Compaction's native code and its twins in Python: the same answers to whatever bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptRecord
from penstock.native import NativeModule
from penstock.records.batch import HEADER_BYTES, build_batch
from penstock.records.record import Record
from penstock.storage.compaction.offset_map import NOT_FOUND, NativeMap, offset_map
from penstock.storage.compaction.scan import scan_keys, splice

parts = st.one_of(st.none(), st.binary(max_size=5), st.binary(min_size=60, max_size=140))
payloads = st.lists(
    st.tuples(st.integers(-(2**40), 2**40), parts, parts), min_size=1, max_size=8
).map(
    lambda drawn: bytes(
        build_batch([Record(at, *fields) for at, fields in enumerate(drawn)])[HEADER_BYTES:]
    )
)


@st.composite
def broken_payloads(draw: st.DrawFn) -> bytes:
    """Records with some bytes changed, cut off or put behind."""
    data = bytearray(draw(payloads))
    for at in draw(st.lists(st.integers(0, len(data) - 1), max_size=3)):
        data[at] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) + draw(st.binary(max_size=3))


def outcome(read: object, *arguments: object, **named: object) -> object:
    try:
        return read(*arguments, **named)  # type: ignore[operator]
    except CorruptRecord as error:
        return str(error)


@given(
    data=st.one_of(payloads, broken_payloads(), st.binary(max_size=40)),
    record_count=st.integers(-1, 9),
    base_offset=st.sampled_from([0, 7, 2**31, 2**63 - 2**31, 2**63 - 1]),
    kept=st.sets(st.integers(0, 8)),
)
def test_keys_and_spliced_records(
    native: NativeModule, data: bytes, record_count: int, base_offset: int, kept: set[int]
) -> None:
    place = {"record_count": record_count, "base_offset": base_offset}
    assert outcome(scan_keys, data, **place, native=native) == outcome(
        scan_keys, data, **place, native=None
    )
    kept = {base_offset + at for at in kept}
    ours = outcome(splice, data, kept, **place, base_timestamp=5, native=native)
    theirs = outcome(splice, data, kept, **place, base_timestamp=5, native=None)
    if isinstance(theirs, tuple) and not theirs[1]:  # Without records no timestamp means anything.
        assert isinstance(ours, tuple)
        ours, theirs = ours[:2], theirs[:2]
    assert ours == theirs


@given(rounds=st.lists(st.lists(st.binary(max_size=2), max_size=40), max_size=5))
def test_maps_say_the_same_of_every_key(native: NativeModule, rounds: list[list[bytes]]) -> None:
    ours = offset_map(buffer_bytes=6_000, native=native)
    theirs = offset_map(buffer_bytes=6_000, native=None)
    start = 0
    for keys in rounds:
        offsets = range(start, start + len(keys))
        assert ours.put(keys, offsets) == theirs.put(keys, offsets)
        assert (ours.size, ours.used_bytes) == (theirs.size, theirs.used_bytes)
        assert ours.newest([*keys, b"abc"]) == theirs.newest([*keys, b"abc"])
        start += len(keys)


def test_digests_are_those_of_siphash(native: NativeModule) -> None:
    """The vectors that came with SipHash, of 128 bits, for keys of 0, 1, 8 and 15 bytes."""
    expected = {
        0: "a3817f04ba25a8e66df67214c7550293",
        1: "da87c1d86b99af44347659119b22fc45",
        8: "3b62a9ba6258f5610f83e264f31497b4",
        15: "5493e99933b0a8117e08ec0f97cfc3d9",
    }
    for size, digest in expected.items():
        memory = bytearray(48)
        native.map_put(memory, bytes(range(16)), [bytes(range(size))], [0])
        assert digest in (memory[0:16].hex(), memory[24:40].hex())


def test_what_is_not_a_table_is_refused(native: NativeModule) -> None:
    seed = bytes(16)
    with pytest.raises(ValueError, match="two slots"):
        native.map_put(bytearray(24), seed, [b"a"], [0])
    with pytest.raises(ValueError, match="16 bytes"):
        native.map_newest(bytearray(480), b"short", [b"a"])
    with pytest.raises(ValueError, match="one offset"):
        native.map_put(bytearray(480), seed, [b"a"], [])
    with pytest.raises(ValueError, match="negative"):
        native.map_put(bytearray(480), seed, [b"a"], [-1])
    with pytest.raises(TypeError, match="bytes"):
        native.map_newest(bytearray(480), seed, ["a"])  # type: ignore[list-item]
    with pytest.raises(BufferError):
        native.map_put(bytes(480), seed, [b"a"], [0])  # type: ignore[arg-type]


def test_a_table_without_room_says_so_and_still_answers(native: NativeModule) -> None:
    found = NativeMap(48, 1.0, native)
    found.put([b"a"], [0])
    found.put([b"b"], [1])
    with pytest.raises(ValueError, match="full"):
        found.put([b"c"], [2])
    assert found.newest([b"a", b"b", b"c"]) == [0, 1, NOT_FOUND]
