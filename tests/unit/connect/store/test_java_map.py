"""The offset file of Apache's standalone worker: a HashMap as Java writes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.store.java_map import decode_map, encode_map
from penstock.connect.store.json_text import DamagedEntry

# What `ObjectOutputStream.writeObject` makes of a HashMap with one entry, k to v.
_ONE = bytes.fromhex(
    "aced000573720011" + b"java.util.HashMap".hex() + "0507dac1c31660d1030002"
    "46000a" + b"loadFactor".hex() + "490009" + b"threshold".hex() + "7870"
    "3f4000000000000c77080000001000000001"
    "7572" "0002" + b"[B".hex() + "acf317f8060854e002000078700000000" "16b"
    "7571007e00020000000176" "78"
)  # fmt: skip


def test_one_entry_is_written_as_java_writes_it() -> None:
    assert encode_map({b"k": b"v"}) == _ONE
    assert decode_map(_ONE) == {b"k": b"v"}


@given(st.dictionaries(st.binary(max_size=20), st.none() | st.binary(max_size=20), max_size=30))
def test_what_is_written_is_read(entries: dict[bytes, bytes | None]) -> None:
    assert decode_map(encode_map(entries)) == entries


@given(st.binary(max_size=60), st.integers(0, 200))
def test_any_other_content_is_refused(noise: bytes, cut: int) -> None:
    for content in (noise, _ONE[:cut] if cut < len(_ONE) else noise):
        with pytest.raises(DamagedEntry):
            decode_map(content)
