"""A changelog's newest rows become pages again, however many there are."""

from pathlib import Path

from tests.support.streams_host import DictShelf

from penstock.streams import LONG, STRING, StreamsBuilder, StreamsTopology
from penstock.streams.tasks.changelogs import ChangelogRow
from penstock.streams.tasks.paged_memory import PagedMemory
from penstock.streams.tasks.restoring import restore_store
from penstock.streams.values.records import Stamped


def counting() -> StreamsTopology:
    builder = StreamsBuilder(value=STRING)
    builder.stream("a").group_by_key().count(store="n")
    return builder.build()


def test_the_newest_row_of_each_key_is_its_state_and_pages_are_as_many_as_needed(
    tmp_path: Path,
) -> None:
    topology, shelf = counting(), DictShelf()
    (store,) = topology.stores
    keys = [b"key %d " % number + b"x" * 400 for number in range(12_000)]
    rows = [ChangelogRow(key, LONG.serialize(1), 5) for key in keys]
    rows += [ChangelogRow(keys[0], LONG.serialize(2), 9), ChangelogRow(keys[1], None, 9)]
    restore_store(topology, store, rows, None, shelf, tmp_path)
    memory = PagedMemory(shelf, STRING, LONG)
    assert memory.state(keys[0]) == Stamped(2, 9)
    assert memory.state(keys[1]) is None
    assert all(memory.state(key) == Stamped(1, 5) for key in keys[2:])
    assert len([page for page in shelf.pages if page >= 0]) > 64


def test_an_empty_changelog_is_an_empty_store(tmp_path: Path) -> None:
    topology, shelf = counting(), DictShelf()
    restore_store(topology, topology.stores[0], (), None, shelf, tmp_path)
    assert PagedMemory(shelf, STRING, LONG).all_keys() == []
