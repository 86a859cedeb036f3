"""Kafka's metrics out of librdkafka's documents: rates over the window, peaks, node numbers."""

import json
import math
from typing import Any

import pytest

from penstock.client.metrics.client_metrics import consumer_metrics, producer_metrics
from penstock.client.metrics.statistics import Series, Statistics
from penstock.client.values import Metrics


def spread(count: int, total: int, highest: int) -> dict[str, int]:
    return {"cnt": count, "sum": total, "max": highest}


def broker(node_id: int, source: str = "learned", **more: Any) -> dict[str, Any]:
    return {
        "nodeid": node_id,
        "source": source,
        "state": "UP",
        "tx": 0,
        "rx": 0,
        "txbytes": 0,
        "rxbytes": 0,
        "rtt": spread(0, 0, 0),
        "int_latency": spread(0, 0, 0),
        "throttle": spread(0, 0, 0),
        **more,
    }


def partition(number: int, **more: Any) -> dict[str, Any]:
    fields = {"txmsgs": 0, "txbytes": 0, "rxmsgs": 0, "rxbytes": 0, "consumer_lag": -1}
    return {"partition": number, **fields, **more}


def document(second: int, sent: int = 0, **more: Any) -> dict[str, Any]:
    whole = {
        "ts": second * 1_000_000,
        "age": second * 1_000_000,
        "tx": second * 10,
        "rx": second * 10,
        "tx_bytes": sent * 100,
        "rx_bytes": 0,
        "txmsgs": sent,
        "txmsg_bytes": sent * 90,
        "rxmsgs": 0,
        "rxmsg_bytes": 0,
        "msg_size": 24,
        "msg_size_max": 1024,
        "brokers": {"b": broker(1)},
        "topics": {},
    }
    return whole | more


def value(metrics: Metrics, group: str, name: str, **tags: str) -> float:
    wanted = {key.replace("_", "-"): tag for key, tag in tags.items()}
    (found,) = [
        metric.value
        for key, metric in metrics.items()
        if key.group == group and key.name == name and wanted.items() <= dict(key.tags).items()
    ]
    return found


def test_rates_are_over_the_window() -> None:
    found = producer_metrics([document(10, sent=100), document(12, sent=300)], "c", errors=0)
    assert value(found, "producer-metrics", "record-send-rate") == 100
    assert value(found, "producer-metrics", "request-rate") == 10
    assert value(found, "producer-metrics", "record-send-total") == 300
    assert value(found, "producer-metrics", "record-size-avg") == 90
    assert value(found, "producer-metrics", "buffer-available-bytes") == 1000


def test_errors_are_counted_by_the_producer_itself() -> None:
    found = producer_metrics([document(10)], "c", errors=5)
    assert value(found, "producer-metrics", "record-error-total") == 5
    assert value(found, "producer-metrics", "record-error-rate") == 0.5


def test_latencies_are_in_ms_and_averaged_over_all_documents() -> None:
    documents = [
        document(10, brokers={"b": broker(1, rtt=spread(1, 1000, 1000))}),
        document(11, brokers={"b": broker(1, rtt=spread(3, 9000, 5000))}),
    ]
    found = producer_metrics(documents, "c", errors=0)
    assert value(found, "producer-metrics", "request-latency-avg") == 2.5
    assert value(found, "producer-metrics", "request-latency-max") == 5
    assert value(found, "producer-node-metrics", "request-latency-max", node_id="node-1") == 5


def test_bootstrap_brokers_have_negative_numbers() -> None:
    brokers = {
        "a": broker(-1, "configured"),
        "b": broker(-1, "configured"),
        "c": broker(3),
        ":0/internal": broker(-1, "internal"),
    }
    found = producer_metrics([document(1, brokers=brokers)], "c", errors=0)
    assert {dict(name.tags).get("node-id") for name in found} == {
        None,
        "node--1",
        "node--2",
        "node-3",
    }


def test_topics_add_up_their_partitions() -> None:
    topic = {
        "batchsize": spread(2, 500, 300),
        "partitions": {
            "0": partition(0, txmsgs=3),
            "1": partition(1, txmsgs=4),
            "-1": partition(-1),
        },
    }
    found = producer_metrics([document(1, topics={"t": topic})], "c", errors=0)
    assert value(found, "producer-topic-metrics", "record-send-total", topic="t") == 7


def test_lag_is_told_by_partition_and_at_most() -> None:
    topic = {"partitions": {"0": partition(0, consumer_lag=4), "1": partition(1, consumer_lag=9)}}
    found = consumer_metrics([document(1, topics={"t": topic})], "c")
    group = "consumer-fetch-manager-metrics"
    assert value(found, group, "records-lag", topic="t", partition="1") == 9
    assert value(found, group, "records-lag-max") == 9


def test_before_anything_was_measured_metrics_exist_without_a_value() -> None:
    found = producer_metrics([], "c", errors=0)
    assert math.isnan(value(found, "producer-metrics", "request-latency-avg"))
    assert value(found, "producer-metrics", "record-send-rate") == 0


def test_every_metric_of_the_tutorials_is_there_with_a_description() -> None:
    topic = {"partitions": {"0": partition(0)}}
    found = producer_metrics([document(1, topics={"t": topic})], "c", errors=0)
    names = {name.name for name in found}
    assert names >= {
        "record-queue-time-max",
        "request-rate",
        "records-per-request-avg",
        "record-size-avg",
        "request-size-max",
        "request-size-avg",
        "compression-rate-avg",
        "compression-rate",
        "request-latency-max",
        "request-latency-avg",
        "incoming-byte-rate",
        "outgoing-byte-rate",
        "record-retry-rate",
        "record-send-rate",
        "byte-rate",
        "record-error-rate",
    }
    assert all(name.description for name in found)
    assert all(dict(name.tags)["client-id"] == "c" for name in found)


def test_the_window_forgets_the_oldest() -> None:
    statistics = Statistics()
    for second in range(100):
        statistics.add(json.dumps({"ts": second}))
    kept = [found["ts"] for found in statistics.documents()]
    assert kept == list(range(69, 100))


def test_large_documents_are_kept_only_as_far_as_rates_need_them() -> None:
    statistics = Statistics()
    for second in range(5):
        statistics.add(json.dumps({"ts": second, "filler": "x" * 5_000_000}))
    assert len(statistics.documents()) == 2


def test_the_peak_of_an_average_is_found_between_documents() -> None:
    parts = [(0.0, {"b": 0, "n": 0}), (1.0, {"b": 10, "n": 1}), (2.0, {"b": 12, "n": 2})]
    assert Series(parts).peak("b", "n") == 10
    assert Series(parts).ratio("b", "n") == pytest.approx(6)
