"""Who has fallen silent, counted in one's own looks."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.meta.shared.presence import Presence


def test_who_is_not_heard_for_so_many_looks_is_silent() -> None:
    presence = Presence(3)
    presence.keep([1, 2])
    assert presence.look() == presence.look() == frozenset()
    presence.heard(2)
    assert presence.look() == {1}


def test_a_newcomer_has_its_time_and_who_left_is_forgotten() -> None:
    presence = Presence(2)
    presence.keep([1])
    presence.look()
    presence.keep([1, 2])
    assert presence.look() == {1}
    presence.keep([2])
    assert presence.look() == {2}
    presence.heard(1)  # A ring that was still on its way.
    assert presence.silent() == {2}


@given(st.lists(st.booleans(), max_size=50), st.integers(1, 8))
def test_who_is_heard_at_least_every_other_look_is_never_silent(
    extra: list[bool], looks_max: int
) -> None:
    presence = Presence(looks_max + 1)
    presence.keep([7])
    for is_heard_twice in extra:
        presence.heard(7)
        if is_heard_twice:
            presence.heard(7)
        assert presence.look() == frozenset()
