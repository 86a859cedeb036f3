"""The map of keys against a dict, in as little memory as it promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.native import NATIVE, NativeModule
from penstock.storage.compaction.offset_map import ENTRY_BYTES, NOT_FOUND, offset_map

keys = st.binary(max_size=6)
# Both maps; where native code was not built, the one of Python twice.
both = pytest.mark.parametrize("native", [None, NATIVE], ids=["python", "native"])


@both
@given(st.lists(keys, max_size=300), st.lists(keys, max_size=50))
def test_the_last_offset_of_every_key_is_found(
    native: NativeModule | None, written: list[bytes], asked: list[bytes]
) -> None:
    found = offset_map(buffer_bytes=20_000, native=native)
    model: dict[bytes, int] = {}
    for offset, key in enumerate(written):
        before = model.get(key)
        model[key] = offset
        assert found.put([key], [offset]) == ([] if before is None else [before])
    assert found.size == len(model)
    assert found.newest(asked) == [model.get(key, NOT_FOUND) for key in asked]


@both
def test_many_keys_at_once_tell_what_they_replace_even_among_themselves(
    native: NativeModule | None,
) -> None:
    found = offset_map(buffer_bytes=10_000, native=native)
    assert found.put([b"a", b"b", b"a"], [1, 2, 3]) == [1]
    assert found.put([b"b", b"c"], [4, 5]) == [2]
    assert found.newest([b"a", b"b", b"c", b"d"]) == [3, 4, 5, NOT_FOUND]


@both
def test_a_map_filled_to_its_limit_knows_every_key(native: NativeModule | None) -> None:
    found = offset_map(buffer_bytes=240_000, load_factor=1.0, native=native)
    names = [b"%d" % number for number in range(found.entries_max)]
    found.put(names, range(len(names)))
    assert found.room == 0
    assert found.newest(names) == list(range(len(names)))
    assert found.newest([b"x%d" % number for number in range(1_000)]) == [NOT_FOUND] * 1_000


@both
def test_an_entry_takes_24_bytes_of_the_buffer(native: NativeModule | None) -> None:
    buffer_bytes = 1 << 20
    found = offset_map(buffer_bytes=buffer_bytes, load_factor=0.9, native=native)
    assert 0.89 * buffer_bytes / 24 < found.entries_max <= 0.9 * buffer_bytes / 24
    found.put([b"a"], [0])
    assert found.used_bytes == ENTRY_BYTES == 24


@both
def test_the_smallest_buffer_holds_at_least_one_key(native: NativeModule | None) -> None:
    found = offset_map(buffer_bytes=1, load_factor=0.01, native=native)
    assert found.room >= 1
