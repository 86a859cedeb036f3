"""Counters are kept by topic, API and listener, and sums never fall."""

from collections.abc import Iterable

import pytest

from penstock.telemetry.metrics import WINDOW_S, Gauge, Metrics


def test_the_counts_of_a_name_are_one_object() -> None:
    metrics = Metrics()
    assert metrics.topic("a") is metrics.topic("a")
    assert metrics.request("Produce") is metrics.request("Produce")
    assert metrics.listener("PLAINTEXT") is metrics.listener("PLAINTEXT")
    assert metrics.topic("a") is not metrics.topic("b")


def test_the_sum_over_topics_keeps_what_a_deleted_topic_counted() -> None:
    metrics = Metrics()
    metrics.topic("a").bytes_in += 5
    metrics.topic("b").bytes_in += 7
    metrics.topic("b").messages_in += 2
    assert metrics.all_topics().bytes_in == 12
    metrics.forget_topic("b")
    metrics.forget_topic("never there")
    assert set(metrics.topics) == {"a"}
    assert (metrics.all_topics().bytes_in, metrics.all_topics().messages_in) == (12, 2)
    metrics.topic("b").bytes_in += 1
    assert metrics.all_topics().bytes_in == 13


def test_a_request_counts_its_time_and_its_errors() -> None:
    produce = Metrics().request("Produce")
    produce.observe(0.25)
    produce.fail("NOT_LEADER_OR_FOLLOWER")
    produce.fail("NOT_LEADER_OR_FOLLOWER")
    assert (produce.count, produce.total_time.count) == (1, 1)
    assert produce.errors == {"NOT_LEADER_OR_FOLLOWER": 2}


def test_open_connections_are_those_opened_and_not_closed() -> None:
    listener = Metrics().listener("PLAINTEXT")
    listener.opened += 3
    listener.closed += 1
    assert listener.active == 2


def test_gauges_are_asked_for_when_they_are_read() -> None:
    metrics = Metrics()
    sizes = {"a": 1}
    metrics.watch(lambda: [Gauge("size", {"topic": t}, n) for t, n in sizes.items()])
    metrics.watch(lambda: [Gauge("up", {}, 1)])
    sizes["b"] = 2
    assert [gauge.value for gauge in metrics.gauges()] == [1, 2, 1]


def test_a_source_that_fails_is_logged_and_the_others_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> Iterable[Gauge]:
        yield Gauge("before", {}, 1)
        raise RuntimeError("the log is closed")

    metrics = Metrics()
    metrics.watch(broken)
    metrics.watch(lambda: [Gauge("after", {}, 2)])
    assert [gauge.name for gauge in metrics.gauges()] == ["before", "after"]
    assert "a source of metrics failed" in caplog.text


def test_windows_of_percentiles_roll_only_when_they_are_old() -> None:
    metrics = Metrics()
    total = metrics.request("Fetch").total_time
    metrics.roll(1000.0)
    total.observe(10.0)
    metrics.roll(1000.0 + WINDOW_S - 1)
    metrics.roll(1000.0 + WINDOW_S)
    assert total.percentiles(1.0)[0] >= 10.0
    metrics.roll(1000.0 + 2 * WINDOW_S)
    assert total.percentiles(1.0) == [0.0]
