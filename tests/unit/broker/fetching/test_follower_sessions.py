"""The sessions of followers: in order, one owner per partition, told instead of looking."""

import pytest

from penstock.broker.fetching.follower_sessions import FollowerSession, FollowerSessions
from penstock.errors import FetchSessionIdNotFound, InvalidFetchSessionEpoch

KEY, OTHER = (b"topic", 0), (b"topic", 1)


def opened(sessions: FollowerSessions, *keys: tuple[bytes, int], epoch: int = 9) -> FollowerSession:
    session = sessions.begin(2, epoch, closes=0)
    for key in keys:
        sessions.entry(session, key)
    return session


def test_requests_are_taken_in_order_only() -> None:
    sessions = FollowerSessions(lambda: 0)
    session = opened(sessions, KEY)
    assert sessions.continue_session(session.session_id, 1, 2, 9) is session
    for epoch in (0, 1, 3):
        with pytest.raises(InvalidFetchSessionEpoch):
            sessions.continue_session(session.session_id, epoch, 2, 9)
    with pytest.raises(InvalidFetchSessionEpoch):
        sessions.continue_session(session.session_id, 2, 2, 8)  # Another life of the broker.
    with pytest.raises(FetchSessionIdNotFound):
        sessions.continue_session(session.session_id, 2, 3, 9)  # Another broker.
    assert sessions.continue_session(session.session_id, 2, 2, 9) is session


def test_a_session_that_overlaps_another_ends_it() -> None:
    sessions = FollowerSessions(lambda: 0)
    first, beside = opened(sessions, KEY), opened(sessions, OTHER)
    assert len(sessions) == 2
    second = opened(sessions, KEY)
    assert not sessions.is_open(first)
    assert sessions.is_open(beside)
    assert sessions.is_open(second)
    assert first.entries == {}


def test_a_new_life_of_a_broker_ends_the_sessions_of_the_old() -> None:
    sessions = FollowerSessions(lambda: 0)
    old = opened(sessions, KEY)
    opened(sessions, OTHER, epoch=10)
    assert not sessions.is_open(old)


def test_sessions_that_nobody_uses_end() -> None:
    now = [0]
    sessions = FollowerSessions(lambda: now[0])
    old = opened(sessions, KEY)
    now[0] = 120_001
    opened(sessions, OTHER)
    assert not sessions.is_open(old)


def test_what_grows_is_dirty_and_wakes_who_waits() -> None:
    sessions = FollowerSessions(lambda: 0)
    session = opened(sessions, KEY, OTHER)
    woken: list[int] = []
    session.on_growth = woken.append
    session.entries[KEY].moved()
    assert (list(session.dirty), woken) == ([session.entries[KEY]], [])
    session.entries[OTHER].grown(7)
    assert (len(session.dirty), woken) == (2, [7])
    sessions.forget(session, [KEY])
    assert list(session.dirty) == [session.entries[OTHER]]


def test_a_hurry_wakes_who_waits_and_keeps_nobody_waiting_for_a_while() -> None:
    now = [0]
    sessions = FollowerSessions(lambda: now[0])
    waiting, quiet = opened(sessions, KEY), opened(sessions, OTHER)
    woken: list[int] = []
    waiting.on_growth = woken.append
    assert (sessions.is_hurried, sessions.wait_ms(500)) == (False, 500)
    sessions.hurry()
    assert woken == [0]
    assert quiet.on_growth is None
    assert sessions.is_hurried
    assert sessions.wait_ms(500) < 50
    assert sessions.wait_ms(7) == 7
    now[0] = 1_000
    assert (sessions.is_hurried, sessions.wait_ms(500)) == (False, 500)
