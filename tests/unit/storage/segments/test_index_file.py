"""A file of growing pairs against a list, whatever is written, cut or forgotten in between."""

import tempfile
from pathlib import Path
from struct import Struct

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.storage.made import MEMORY

from penstock.storage.segments.index_file import IndexFile

ENTRY = Struct(">qi")


@settings(max_examples=100, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(1, 300)),
            st.tuples(st.just("truncate"), st.integers(0, 400)),
            st.tuples(st.sampled_from(["write", "reopen"]), st.just(0)),
        ),
        max_size=10,
    ),
    looked_up=st.lists(st.integers(-5, 1500), max_size=8),
)
def test_it_agrees_with_a_list(steps: list[tuple[str, int]], looked_up: list[int]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        index = IndexFile(f"{root}/i", ENTRY, 0)
        index.create()
        model: list[tuple[int, int]] = []
        for step, count in steps:
            if step == "append":
                for _ in range(count):
                    pair = (len(model) * 3 + 1, len(model) * 2)
                    index.append(*pair)
                    model.append(pair)
            elif step == "truncate":
                index.truncate(count)
                model = model[:count]
            else:
                index.write_out()
                if step == "reopen":
                    index = IndexFile(index.path, ENTRY, len(model))
            _assert_equal(index, model, looked_up)
        index.write_out()
        assert Path(index.path).read_bytes() == b"".join(ENTRY.pack(*pair) for pair in model)


def _assert_equal(index: IndexFile, model: list[tuple[int, int]], looked_up: list[int]) -> None:
    assert index.count == len(model)
    assert index.last() == (model[-1] if model else None)
    assert index.first() == (model[0] if model else None)
    for value in looked_up:
        for field in (0, 1):
            below = [pair for pair in model if pair[field] <= value]
            assert index.find_last(field, value) == (below[-1] if below else None)
            assert index.count_through(field, value) == len(below)


def test_entries_wait_in_memory_until_a_page_is_full() -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        index = IndexFile(f"{root}/i", ENTRY, 0)
        index.create()
        for number in range(127):
            index.append(number, number)
        assert Path(index.path).stat().st_size == 0
        index.append(127, 127)
        assert Path(index.path).stat().st_size == 128 * ENTRY.size
