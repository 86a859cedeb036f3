"""Pages hold what a dict would hold, through any number of times they are put away and grow."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.streams_host import DictShelf

from penstock.streams.tasks import pages as module
from penstock.streams.tasks.pages import FIRST_PAGES, PageError, Pages, pack_page, unpack_page

keys = st.binary(max_size=4)
entries = st.dictionaries(keys, st.binary(max_size=30))


@given(entries)
def test_a_page_comes_back(page: dict[bytes, bytes]) -> None:
    assert unpack_page(pack_page(page)) == page


@given(entries, st.data())
def test_a_page_that_was_cut_off_is_refused(page: dict[bytes, bytes], data: st.DataObject) -> None:
    whole = pack_page(page)
    with pytest.raises((PageError, struct.error)):
        unpack_page(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.lists(st.tuples(keys, st.none() | st.binary(max_size=300), st.booleans())))
def test_pages_hold_what_a_dict_holds(changes: list[tuple[bytes, bytes | None, bool]]) -> None:
    before, module.PAGE_BYTES = module.PAGE_BYTES, 20
    try:
        shelf, model = DictShelf(), dict[bytes, bytes]()
        pages = Pages(shelf)
        for key, value, is_put_away in changes:
            pages.put(key, value)
            if value is None:
                model.pop(key, None)
            else:
                model[key] = value
            if is_put_away:
                pages.flush()
                assert pages.size_bytes == sum(map(len, shelf.pages.values()))
                pages = Pages(shelf, pages.count, pages.size_bytes)
            assert pages.get(key) == value
        assert dict(pages.entries()) == model
    finally:
        module.PAGE_BYTES = before


def test_pages_double_when_they_are_large() -> None:
    shelf = DictShelf()
    pages = Pages(shelf)
    for number in range(2_000):
        pages.put(b"%d" % number, bytes(4_000))
    pages.flush()
    assert pages.count == 2 * FIRST_PAGES
    assert Pages(shelf, pages.count, pages.size_bytes).get(b"1999") == bytes(4_000)
