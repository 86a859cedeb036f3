"""States come back from bytes as they were; bytes that are none are refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.streams import JSON, Serde, SerdeError, Stamped, TimeWindow, Windowed
from penstock.streams.steps.contract import Timer
from penstock.streams.steps.foreign_key import ForeignSubscription, Instruction
from penstock.streams.steps.stream_join import JoinClock, JoinState, Waiting
from penstock.streams.steps.suppress import HeldBack, HeldWithHeaders
from penstock.streams.steps.window_clock import WindowClock
from penstock.streams.tasks.state_values import decoded, encoded

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=20,
)


@given(plain)
def test_plain_values_come_back_with_their_types(value: Any) -> None:
    found = decoded(encoded(value))
    assert found == value and repr(found) == repr(value)


@given(plain, st.integers(-1, 2**50))
def test_our_own_classes_come_back(value: Any, at_ms: int) -> None:
    timer = Timer(at_ms, 1, b"k")
    held = HeldBack(timer=timer, key="k", change=value, timestamp_ms=at_ms, prior=None)
    states = [
        Stamped(value, at_ms),
        ((TimeWindow(1, at_ms), value),),
        Windowed("k", TimeWindow(0, at_ms)),
        WindowClock(at_ms, (1, at_ms)),
        JoinClock(at_ms, (1, 2), 3),
        JoinState(
            held=(((at_ms, value),), ()), waiting=(Waiting(timer=timer, key="k", value=value),)
        ),
        ForeignSubscription(
            ask=Instruction.TELL_ALWAYS, primary_key=value, primary_bytes=b"p", version=None
        ),
        HeldWithHeaders.of(held, (("h", b"1"), ("none", None))),
    ]
    assert decoded(encoded(states)) == states


class Money:
    """A value of the user's own."""

    def __init__(self, cents: int) -> None:
        self.cents = cents


def test_what_is_not_plain_is_written_by_its_serde() -> None:
    serde: Serde[Money] = Serde(
        "money", lambda m: str(m.cents).encode(), lambda data: Money(int(data))
    )
    assert decoded(encoded(Stamped(Money(5), 1), serde), serde).value.cents == 5
    with pytest.raises(SerdeError, match="Money, which no serde was given"):
        encoded(Money(5))
    with pytest.raises(SerdeError, match="is not for the JSON serde"):
        encoded(Money(5), JSON)


@given(plain, st.data())
def test_bytes_that_were_cut_off_are_refused(value: Any, data: st.DataObject) -> None:
    whole = encoded((value, 1))
    end = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(SerdeError):
        decoded(whole[:end])


@given(st.binary())
def test_any_bytes_are_a_state_or_refused(data: bytes) -> None:
    for candidate in (data, b"\x01" + data):
        try:
            decoded(candidate)
        except SerdeError:
            continue
