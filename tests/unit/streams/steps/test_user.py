"""A processor's store: the same in memory and in pages, as Kafka Streams' key-value stores."""

from collections.abc import Callable

import pytest
from tests.support.streams_host import DictShelf

from penstock.streams import BYTES, LONG, STRING, Serde
from penstock.streams.steps.user import UserStore
from penstock.streams.tasks.memory import MemoryStore
from penstock.streams.tasks.paged_memory import PagedMemory, PagedStore


def in_memory(keys: Serde[str]) -> UserStore:
    return MemoryStore(keys)


def in_pages(keys: Serde[str]) -> UserStore:
    return PagedStore(PagedMemory(DictShelf(), keys, LONG))


@pytest.mark.parametrize("make", [in_memory, in_pages])
def test_a_store_is_read_and_written_in_kafka_streams_ways(
    make: Callable[[Serde[str]], UserStore],
) -> None:
    store = make(STRING)
    store.put_all([("b1", 1), ("a", 2), ("b2", 3)])
    assert store.put_if_absent("a", 9) == 2
    assert store.put_if_absent("c", 4) is None
    assert list(store.all()) == [("a", 2), ("b1", 1), ("b2", 3), ("c", 4)]
    assert list(store.reverse_all()) == [("c", 4), ("b2", 3), ("b1", 1), ("a", 2)]
    assert list(store.range("b1", "b2")) == [("b1", 1), ("b2", 3)]
    assert list(store.reverse_range(None, "b1")) == [("b1", 1), ("a", 2)]
    assert list(store.prefix_scan("b")) == [("b1", 1), ("b2", 3)]
    assert list(store.prefix_scan(b"b2", BYTES)) == [("b2", 3)]
    assert store.approximate_num_entries() == 4
    assert store.delete("a") == 2 and store.delete("a") is None
    store.put("c", None)
    assert list(store.all()) == [("b1", 1), ("b2", 3)]


@pytest.mark.parametrize("make", [in_memory, in_pages])
def test_what_is_gone_through_may_be_deleted_on_the_way(
    make: Callable[[Serde[str]], UserStore],
) -> None:
    store = make(STRING)
    store.put_all([("a", 1), ("b", 2)])
    for key, _ in store.all():
        store.delete(key)
    assert store.approximate_num_entries() == 0
