"""Memory in pages remembers as a dict does, and tells what changed."""

from tests.support.streams_host import DictShelf

from penstock.streams import JSON, STRING, Stamped
from penstock.streams.steps.contract import Timer
from penstock.streams.tasks.paged_memory import PagedMemory, PagedStore
from penstock.streams.tasks.state_values import decoded


def memory(shelf: DictShelf) -> PagedMemory:
    return PagedMemory(shelf, STRING, JSON)


def test_states_clock_and_timers_are_there_again() -> None:
    shelf = DictShelf()
    first = memory(shelf)
    timers = (Timer(5, 0, b"a"), Timer(7, 1, b"a"))
    first.put(b"a", "a", Stamped("x", 5), timers)
    first.put(b"b", "b", Stamped("y", 3), (Timer(3, 0, b"b"),))
    first.clock = 9
    assert [(change.key, change.before) for change in first.flush()] == [(b"a", None), (b"b", None)]
    second = memory(shelf)
    assert second.clock == 9 and second.entry(b"a") == ("a", Stamped("x", 5))
    assert second.timers == [Timer(3, 0, b"b"), *timers]
    second.put(b"a", "a", None, ())
    (gone,) = second.flush()
    assert gone.after is None and decoded(gone.before or b"") == Stamped("x", 5)
    assert memory(shelf).state(b"a") is None and memory(shelf).timers == [Timer(3, 0, b"b")]


def test_an_aggregate_that_was_changed_in_place_has_changed() -> None:
    shelf = DictShelf()
    first = memory(shelf)
    first.put(b"a", "a", Stamped(["x"], 5), None)
    list(first.flush())
    second = memory(shelf)
    row = second.state(b"a")
    row.value.append("y")
    second.put(b"a", "a", Stamped(row.value, 5), None)
    assert len(list(second.flush())) == 1
    assert memory(shelf).state(b"a") == Stamped(["x", "y"], 5)


def test_what_is_as_it_was_is_no_change() -> None:
    shelf = DictShelf()
    first = memory(shelf)
    first.put(b"a", "a", Stamped(1, 5), None)
    list(first.flush())
    second = memory(shelf)
    second.put(b"a", "a", Stamped(2, 6), None)
    second.put(b"a", "a", Stamped(1, 5), None)
    assert not list(second.flush())


def test_a_users_store_is_in_the_order_of_its_keys() -> None:
    shelf = DictShelf()
    store = PagedStore(memory(shelf))
    for key in ("b", "a", "c"):
        store.put(key, key.upper())
    list(store.memory.flush())
    again = PagedStore(memory(shelf))
    again.put("d", "D")
    assert again.delete("a") == "A"
    assert list(again.all()) == [("b", "B"), ("c", "C"), ("d", "D")]
    assert list(again.range("b", "c")) == [("b", "B"), ("c", "C")]
