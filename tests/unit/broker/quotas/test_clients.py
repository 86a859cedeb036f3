"""Meters by user and client: found, shared, changed live, forgotten."""

import heapq
from collections.abc import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.broker.quotas import clients
from penstock.broker.quotas.clients import (
    DEBT_MS_MAX,
    IDLE_MS_MAX,
    ClientQuotas,
    Meter,
    MutationMeter,
)
from penstock.broker.quotas.rates import QuotaWindow
from penstock.cluster.image.image import ConfigKey

WINDOW = QuotaWindow(samples=11, sample_ms=1000)
ALICE, BOB = "User:alice", "User:bob"


class Clock:
    def __init__(self) -> None:
        self.now_ms = 7

    def __call__(self) -> int:
        return self.now_ms


def quotas_of(
    configs: Mapping[ConfigKey, Mapping[str, str]], clock: Clock | None = None
) -> ClientQuotas:
    quotas = ClientQuotas(window=WINDOW, mutation_window=WINDOW, now_ms=clock or Clock())
    quotas.take_configs(configs)
    return quotas


def produce(quotas: ClientQuotas, principal: str, client_id: str | None) -> Meter:
    meter = quotas.of(principal, client_id).produce
    assert meter is not None
    return meter


def test_without_quotas_nothing_is_active() -> None:
    quotas = quotas_of({("topics", "t"): {"retention.ms": "1"}, ("users", "a"): {"SCRAM": "x"}})
    assert not quotas.is_active
    quotas.take_configs({("ips", "10.0.0.1"): {"connection_creation_rate": "1"}})
    assert not quotas.is_active


def test_each_quota_is_found_on_its_own_level() -> None:
    quotas = quotas_of(
        {
            ("users", "alice"): {"producer_byte_rate": "100"},
            ("clients", "c"): {"producer_byte_rate": "200", "consumer_byte_rate": "300"},
            ("users", "<default>"): {"request_percentage": "12.5"},
            ("clients", "<default>"): {"controller_mutation_rate": "4"},
        }
    )
    assert quotas.is_active
    found = quotas.of(ALICE, "c")
    assert found.produce is not None and found.produce.limit == 100
    assert found.fetch is not None and found.fetch.limit == 300
    assert found.request is not None and found.request.limit == 12.5
    assert found.mutation is not None and found.mutation.limit == 4
    assert quotas.of(ALICE, "d").fetch is None


def test_clients_of_a_user_share_its_quota() -> None:
    quotas = quotas_of({("users", "<default>"): {"producer_byte_rate": "100"}})
    assert produce(quotas, ALICE, "c") is produce(quotas, ALICE, "d")
    assert produce(quotas, ALICE, "c") is not produce(quotas, BOB, "c")


def test_users_of_a_client_share_its_quota() -> None:
    quotas = quotas_of({("clients", "<default>"): {"producer_byte_rate": "100"}})
    assert produce(quotas, ALICE, "c") is produce(quotas, BOB, "c")
    assert produce(quotas, ALICE, "c") is not produce(quotas, ALICE, "d")


def test_a_client_of_a_user_has_its_own() -> None:
    quotas = quotas_of({("users", "alice/clients/<default>"): {"producer_byte_rate": "100"}})
    assert produce(quotas, ALICE, "c") is not produce(quotas, ALICE, "d")
    assert quotas.of(BOB, "c").produce is None


def test_a_client_without_an_id_has_the_default() -> None:
    quotas = quotas_of({("clients", "<default>"): {"producer_byte_rate": "100"}})
    assert produce(quotas, ALICE, None) is produce(quotas, BOB, "")


def test_a_change_acts_at_once_and_forgets_nothing() -> None:
    clock = Clock()
    quotas = quotas_of({("clients", "c"): {"producer_byte_rate": "100"}}, clock)
    assert produce(quotas, ALICE, "c").charge(1000, clock()) == 0
    quotas.take_configs({("clients", "c"): {"producer_byte_rate": "50"}})
    # 1000 bytes at 50 a second are 20 s, of which the window of 10 s has passed.
    assert produce(quotas, ALICE, "c").charge(0, clock()) == 10_000
    quotas.take_configs({("clients", "c"): {"producer_byte_rate": "1000"}})
    assert produce(quotas, ALICE, "c").charge(0, clock()) == 0


def test_the_last_quota_takes_the_meters_with_it() -> None:
    quotas = quotas_of({("clients", "c"): {"producer_byte_rate": "100"}})
    produce(quotas, ALICE, "c")
    assert len(quotas) == 1
    quotas.take_configs({})
    assert not quotas.is_active
    assert len(quotas) == 0
    assert quotas.of(ALICE, "c") == (None, None, None, None)


def test_a_change_of_something_else_does_not_even_touch_them() -> None:
    configs = {("clients", "c"): {"producer_byte_rate": "100"}}
    quotas = quotas_of(configs)
    found = quotas.of(ALICE, "c")
    quotas.take_configs({**configs, ("topics", "t"): {"retention.ms": "1"}})
    assert quotas.of(ALICE, "c") is found


def test_time_is_paused_for_by_one_sample_at_most() -> None:
    quotas = quotas_of({("clients", "c"): {"request_percentage": "1"}})
    meter = quotas.of(ALICE, "c").request
    assert meter is not None
    assert meter.charge(10_000, 7) == 1000
    quotas.take_configs({("clients", "c"): {"producer_byte_rate": "1"}})
    assert produce(quotas, ALICE, "c").charge(10_000, 7) == 9_990_000


# The promise that quotas make


@given(
    st.integers(1, 5000),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 100_000)), min_size=1, max_size=40),
)
def test_a_client_never_exceeds_its_limit_by_more_than_the_burst_and_a_request(
    limit: int, requests: list[tuple[int, int]]
) -> None:
    """Over any stretch of its life: what it used ≤ limit x (stretch + window) + one request."""
    meter, now_ms = Meter(WINDOW, limit=limit, now_ms=0), 0
    history: list[tuple[int, int]] = []
    for idle_ms, size in requests:
        now_ms += idle_ms
        history.append((now_ms, size))
        now_ms += meter.charge(size, now_ms)
    assume(meter_forgave_nothing(meter, history))
    largest = max(size for _, size in history)
    for first, (began_ms, _) in enumerate(history):
        total = 0
        for at_ms, size in history[first:]:
            total += size
            assert total <= allowed(limit, at_ms - began_ms, len(history)) + largest


@given(
    st.integers(2, 6),
    st.integers(1, 5000),
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 2000), st.integers(1, 100_000)),
        min_size=1,
        max_size=60,
    ),
)
def test_many_connections_of_a_client_share_one_limit(
    connections: int, limit: int, requests: list[tuple[int, int, int]]
) -> None:
    """Each may send one request before its own pause: that much more, and no more."""
    meter, now_ms = Meter(WINDOW, limit=limit, now_ms=0), 0
    muted_until = [0] * connections
    history = []
    for which, idle_ms, size in requests:
        which %= connections
        now_ms = max(now_ms + idle_ms, muted_until[which])
        history.append((now_ms, size))
        muted_until[which] = now_ms + meter.charge(size, now_ms)
    assume(meter_forgave_nothing(meter, history))
    largest = max(size for _, size in history)
    total = sum(size for _, size in history)
    assert total <= allowed(limit, now_ms, len(history)) + connections * largest


def allowed(limit: int, stretch_ms: int, pauses: int) -> float:
    """Pauses are rounded to milliseconds, so each may be half of one too short."""
    window_ms = WINDOW.samples * WINDOW.sample_ms
    return limit * (stretch_ms + window_ms + pauses) / 1000


def meter_forgave_nothing(meter: Meter, history: list[tuple[int, int]]) -> bool:
    return sum(size for _, size in history) < meter.limit * DEBT_MS_MAX / 1000


@pytest.mark.parametrize("connections", [1, 8, 100])
@pytest.mark.parametrize("request_bytes", [1_000, 100_000, 3_000_000])
def test_a_client_that_takes_all_it_can_gets_its_limit_and_not_more(
    connections: int, request_bytes: int
) -> None:
    limit, end_ms = 1_000_000, 3_600_000
    meter = Meter(WINDOW, limit=limit, now_ms=0)
    waiting = [(0, number) for number in range(connections)]
    total, charges = 0, 0
    while waiting[0][0] < end_ms and charges < 20_000:
        now_ms, number = heapq.heappop(waiting)
        total, charges = total + request_bytes, charges + 1
        heapq.heappush(waiting, (now_ms + 1 + meter.charge(request_bytes, now_ms), number))
    ended_ms = waiting[0][0]
    burst = limit * WINDOW.samples * WINDOW.sample_ms / 1000
    assert total <= limit * ended_ms / 1000 + burst + connections * request_bytes
    assert total >= 0.8 * limit * ended_ms / 1000


def test_a_debt_outlives_the_window() -> None:
    meter = Meter(WINDOW, limit=1000, now_ms=0)
    assert meter.charge(100_000, 0) == 90_000
    assert meter.charge(0, 30_000) == 59_000  # The debt knows a whole window of 11 s.
    assert meter.charge(0, 90_000) == 0


def test_nobody_is_locked_out_for_days_by_a_quota_that_was_a_mistake() -> None:
    meter = Meter(WINDOW, limit=1, now_ms=0)
    assert meter.charge(1_000_000, 0) == 999_990_000
    assert meter.charge(0, 60_000) == DEBT_MS_MAX - 60_000
    meter.limit = 1_000_000
    assert meter.charge(0, 60_000) <= 1


def test_what_is_held_back_is_not_charged_and_passes_later() -> None:
    meter = Meter(WINDOW, limit=1000, now_ms=0)
    assert meter.admit(9000, 0) == (0, True)
    assert meter.admit(5000, 0) == (4000, False)
    assert meter.used.total == 9000
    assert meter.admit(1000, 0) == (0, True)
    assert meter.admit(5000, 11_000) == (0, True)


def test_more_than_the_quota_ever_allows_passes_when_nothing_is_owed() -> None:
    meter = Meter(WINDOW, limit=1000, now_ms=0)
    assert meter.admit(50_000, 0) == (40_000, True)
    pause_ms, may_pass = meter.admit(50_000, 20_000)
    assert pause_ms > 0 and not may_pass
    _, may_pass = meter.admit(50_000, 40_000)
    assert may_pass


def test_the_silent_are_forgotten_after_an_hour_and_the_others_not() -> None:
    clock = Clock()
    quotas = quotas_of({("clients", "<default>"): {"producer_byte_rate": "100"}}, clock)
    kept, _ = produce(quotas, ALICE, "kept"), produce(quotas, ALICE, "silent")
    clock.now_ms += IDLE_MS_MAX - 1
    kept.charge(1, clock())
    produce(quotas, ALICE, "another")
    assert len(quotas) == 3
    clock.now_ms += IDLE_MS_MAX // 10 + 1
    produce(quotas, ALICE, "one more")
    assert len(quotas) == 3
    assert produce(quotas, ALICE, "kept") is kept


def test_a_shared_meter_stays_shared_when_it_was_forgotten() -> None:
    clock = Clock()
    quotas = quotas_of({("users", "alice"): {"producer_byte_rate": "100"}}, clock)
    produce(quotas, ALICE, "c")
    clock.now_ms += 2 * IDLE_MS_MAX
    new = produce(quotas, ALICE, "d")
    assert produce(quotas, ALICE, "c") is new


def test_invented_names_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "METERS_MAX", 50)
    clock = Clock()
    quotas = quotas_of({("clients", "<default>"): {"producer_byte_rate": "100"}}, clock)
    for number in range(500):
        clock.now_ms += 1
        produce(quotas, ALICE, f"c{number}").charge(1, clock())
        assert len(quotas) <= 50
    assert produce(quotas, ALICE, "c499").used.total == 1


def test_names_that_share_a_meter_do_not_fill_the_memory_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "METERS_MAX", 50)
    quotas = quotas_of({("users", "alice"): {"producer_byte_rate": "100"}})
    meter = produce(quotas, ALICE, "c")
    for number in range(500):
        assert produce(quotas, ALICE, f"c{number}") is meter
        assert len(quotas._known) <= 50


def test_what_was_not_used_is_given_back() -> None:
    meter = Meter(WINDOW, limit=100, now_ms=0)
    assert meter.burst == 1000
    assert meter.charge(1000, 0) == 0
    assert meter.charge(500, 0) == 5000
    meter.refund(500, 0)
    assert meter.charge(0, 0) == 0


def test_a_strict_change_is_refused_only_while_there_is_a_debt() -> None:
    meter = MutationMeter(WINDOW, limit=1, now_ms=0)
    assert meter.charge(20, 0, is_strict=True) == 0
    assert meter.charge(1, 4_000, is_strict=True) == 5000
    assert meter.charge(5, 9_000, is_strict=True) == 0
    assert meter.charge(1, 9_000, is_strict=True) == 5000
    assert meter.charge(1, 14_000, is_strict=True) == 0


def test_a_change_of_an_old_client_is_made_and_waited_for() -> None:
    meter = MutationMeter(WINDOW, limit=1, now_ms=0)
    assert meter.charge(20, 0, is_strict=False) == 9000
    assert meter.charge(1, 0, is_strict=False) == 10_000


def test_metrics_tell_rates_and_throttle_times_by_client() -> None:
    clock = Clock()
    quotas = quotas_of(
        {
            ("users", "alice"): {"producer_byte_rate": "100"},
            ("clients", "c"): {"consumer_byte_rate": "100", "controller_mutation_rate": "2"},
            ("users", "alice/clients/c"): {"request_percentage": "50"},
        },
        clock,
    )
    found = quotas.of(ALICE, "c")
    assert found.produce is not None
    found.produce.charge(2000, clock())
    told = {
        (name.removeprefix("kafka_server_quota_"), *sorted(labels.items())): value
        for name, labels, value in quotas.gauges()
    }
    produced = (("resource", "Produce"), ("user", "alice"))
    assert told["byte_rate", *produced] == 200
    assert told["throttle_time", *produced] == 10_000
    client = ("clientId", "c")
    assert told["byte_rate", client, ("resource", "Fetch")] == 0
    assert told["tokens", client, ("resource", "ControllerMutation")] == 22
    assert told["request_time", client, ("resource", "Request"), ("user", "alice")] == 0
    assert len(told) == 8
