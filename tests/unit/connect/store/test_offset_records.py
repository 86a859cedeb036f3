"""Records of the offset topic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.store.json_text import DamagedEntry
from penstock.connect.store.offset_records import canonical, decode_offset, encode_offset

_VALUES = st.text(max_size=8) | st.integers() | st.booleans() | st.none()
_FLAT = st.dictionaries(st.text(max_size=8), _VALUES, max_size=4)


def test_the_bytes_are_those_of_apaches_worker() -> None:
    record = encode_offset("src", {"filename": "/in.txt"}, {"position": 14})
    assert record == (b'["src",{"filename":"/in.txt"}]', b'{"position":14}')


@given(st.text(max_size=10), _FLAT, st.none() | _FLAT)
def test_what_is_written_is_read(name: str, partition: dict, offset: dict | None) -> None:  # type: ignore[type-arg]
    assert decode_offset(*encode_offset(name, partition, offset)) == (name, partition, offset)


def test_equal_partitions_are_known_whatever_the_order_of_their_fields() -> None:
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})


@pytest.mark.parametrize("key", [b"", b"{}", b'["a"]', b"[1,{}]", b'["a",1]', None])
def test_a_damaged_key_is_told(key: bytes | None) -> None:
    with pytest.raises(DamagedEntry):
        decode_offset(key, b"{}")
