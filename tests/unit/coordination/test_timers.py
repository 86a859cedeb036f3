"""Deadlines come in order, move cheaply, and are gone when cancelled."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.coordination.timers import Timers


class Hands:
    """A clock's hands, and what was called when they stood where."""

    def __init__(self) -> None:
        self.now = 0
        self.calls: list[tuple[int, str]] = []
        self.timers = Timers(lambda: self.now)

    def set(self, name: str, after_ms: int) -> None:
        self.timers.set(("g", name), after_ms, lambda: self.calls.append((self.now, name)))

    def advance_to(self, moment: int) -> None:
        while (next_ms := self.timers.next_ms()) is not None and next_ms <= moment:
            self.now = max(self.now, next_ms)
            self.timers.run_due()
        self.now = moment


def test_timers_ring_in_the_order_of_their_deadlines() -> None:
    hands = Hands()
    hands.set("late", 30)
    hands.set("early", 10)
    hands.advance_to(100)
    assert hands.calls == [(10, "early"), (30, "late")]


def test_a_timer_set_again_rings_once_at_the_new_deadline() -> None:
    hands = Hands()
    hands.set("session", 10)
    hands.advance_to(5)
    hands.set("session", 10)
    hands.advance_to(14)
    assert hands.calls == []
    hands.advance_to(20)
    assert hands.calls == [(15, "session")]


def test_a_timer_can_be_moved_closer() -> None:
    hands = Hands()
    hands.set("join", 100)
    hands.set("join", 10)
    hands.advance_to(200)
    assert hands.calls == [(10, "join")]


def test_a_cancelled_timer_never_rings() -> None:
    hands = Hands()
    hands.set("a", 10)
    hands.timers.cancel(("g", "a"))
    hands.advance_to(100)
    assert hands.calls == []
    assert len(hands.timers) == 0


def test_the_timers_of_one_group_are_cancelled_together() -> None:
    hands = Hands()
    hands.set("a", 10)
    hands.timers.set(("other", "a"), 10, lambda: hands.calls.append((hands.now, "other")))
    hands.timers.cancel_group("g")
    hands.advance_to(100)
    assert hands.calls == [(10, "other")]


def test_a_timer_may_be_set_from_within_a_timer() -> None:
    hands = Hands()
    hands.timers.set(("g", "first"), 10, lambda: hands.set("second", 5))
    hands.advance_to(100)
    assert hands.calls == [(15, "second")]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["set", "cancel", "advance"]),
            st.sampled_from("abc"),
            st.integers(0, 20),
        ),
        max_size=40,
    )
)
def test_whatever_happens_each_timer_rings_once_at_its_last_deadline(
    steps: list[tuple[str, str, int]],
) -> None:
    hands = Hands()
    due: dict[str, int] = {}
    expected: list[tuple[int, str]] = []
    for what, name, number in [*steps, ("advance", "", 100)]:
        if what == "set":
            hands.set(name, number)
            due[name] = hands.now + number
        elif what == "cancel":
            hands.timers.cancel(("g", name))
            due.pop(name, None)
        else:
            moment = hands.now + number
            rung = sorted((at, timer) for timer, at in due.items() if at <= moment)
            expected += rung
            for _, timer in rung:
                del due[timer]
            hands.advance_to(moment)
    assert sorted(hands.calls) == sorted(expected)
    assert [at for at, _ in hands.calls] == sorted(at for at, _ in hands.calls)
