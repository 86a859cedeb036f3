"""A cache that forgets what was unused for longest, and makes each thing once."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.schemas.bounded_cache import BoundedCache


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=60), st.integers(1, 5))
def test_it_holds_the_entries_used_last(steps: list[tuple[bool, int]], most: int) -> None:
    cache: BoundedCache[int, str] = BoundedCache(most)
    model: list[int] = []  # The one used last is last.
    for puts, key in steps:
        if puts:
            cache.put(key, str(key))
            model = [one for one in model if one != key] + [key]
            model = model[-most:]
        else:
            assert cache.get(key) == (str(key) if key in model else None)
            if key in model:
                model.remove(key)
                model.append(key)
        assert len(cache) == len(model)


def test_what_fails_is_not_remembered() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)

    def fail() -> int:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        cache.get_or_make("a", fail)
    assert cache.get_or_make("a", lambda: 1) == 1
    assert cache.get_or_make("a", fail) == 1


def test_threads_make_a_thing_once_and_may_need_another_for_it() -> None:
    cache: BoundedCache[str, int] = BoundedCache(10)
    made: list[str] = []

    def make(name: str) -> int:
        made.append(name)
        return cache.get_or_make("inner", lambda: make("inner") + 1) if name == "outer" else 1

    threads = [
        threading.Thread(target=lambda: cache.get_or_make("outer", lambda: make("outer")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == ["inner", "outer"]
