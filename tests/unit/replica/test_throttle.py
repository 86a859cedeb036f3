"""Rates of replication: who is meant, and when it is enough."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.config.broker import BrokerConfig
from penstock.replica.throttle import NO_LIMIT, ReplicationRate, is_throttled, window_s


def test_a_topic_names_replicas_or_all_of_them() -> None:
    assert is_throttled(("0:1", "1:2"), 1, 2)
    assert not is_throttled(("0:1", "1:2"), 0, 2)
    assert not is_throttled(("10:1",), 0, 1)
    assert is_throttled(("*",), 5, 9)
    assert not is_throttled((), 5, 9)


def test_without_a_limit_it_is_never_enough() -> None:
    rate = ReplicationRate(lambda: NO_LIMIT, clock_ms=lambda: 0)
    rate.note(1 << 60)
    assert not rate.is_exceeded
    assert rate.copied_bytes == 1 << 60


def test_what_was_too_much_is_waited_for() -> None:
    now, limit = [0], [1_000]
    rate = ReplicationRate(lambda: limit[0], clock_ms=lambda: now[0])
    assert not rate.is_exceeded
    rate.note(3_000)
    assert rate.is_exceeded
    now[0] = 2_000
    assert rate.is_exceeded
    now[0] = 2_001
    assert not rate.is_exceeded
    rate.note(10_000)
    limit[0] = 50_000  # A new rate counts at once.
    assert not rate.is_exceeded


@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 2_000)), max_size=40))
def test_no_more_passes_than_the_rate_allows(tries: list[tuple[int, int]]) -> None:
    """Over any time: the rate times that time, a full bucket, and one piece on credit."""
    now, passed, largest = [0], 0, 0
    rate = ReplicationRate(lambda: 1_000, clock_ms=lambda: now[0])
    for wait_ms, size_bytes in tries:
        now[0] += wait_ms
        if not rate.is_exceeded:
            rate.note(size_bytes)
            passed += size_bytes
            largest = max(largest, size_bytes)
    assert passed <= now[0] + 1_000 + largest


def test_what_may_be_made_up_for_at_once_is_a_second_unless_somebody_asks_for_more() -> None:
    assert window_s(BrokerConfig({})) == 1
    assert window_s(BrokerConfig({"replication.quota.window.size.seconds": "3"})) == 3
    asked = {"replication.quota.window.num": "6", "replication.quota.window.size.seconds": "2"}
    assert window_s(BrokerConfig(asked)) == 10
    assert window_s(BrokerConfig({"replication.quota.window.num": "1"})) == 1
    now = [0]
    config = BrokerConfig(asked)
    rate = ReplicationRate(lambda: 100, window_s=lambda: window_s(config), clock_ms=lambda: now[0])
    rate.note(999)
    assert not rate.is_exceeded
    rate.note(1)
    assert rate.is_exceeded
