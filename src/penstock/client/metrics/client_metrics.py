"""Kafka's client metrics, computed from librdkafka's statistics.

Rates and averages are over the last half minute, as Kafka's are. The names, groups and descriptions
are Kafka's and stand in `tables`.
"""

import math
from collections.abc import Iterable, Iterator

from penstock.client.metrics.statistics import Document, Series
from penstock.client.metrics.tables import (
    CONSUMER,
    CONSUMER_TOPIC,
    COORDINATOR,
    NODE,
    PARTITION,
    PRODUCER,
    TOPIC,
    Definition,
)
from penstock.client.values import Metric, MetricName, Metrics


def producer_metrics(documents: list[Document], client_id: str, errors: int) -> Metrics:
    """All producer metrics; `errors` counts the records that could not be sent."""
    found = dict(_measure("producer-metrics", PRODUCER, _total(documents), client_id))
    found.update(_error_metrics(documents, client_id, errors))
    for node_id, series in _nodes(documents):
        tags = (("node-id", node_id),)
        found.update(_measure("producer-node-metrics", NODE, series, client_id, tags))
    for topic, series in _topics(documents):
        tags = (("topic", topic),)
        found.update(_measure("producer-topic-metrics", TOPIC, series, client_id, tags))
    return found


def consumer_metrics(documents: list[Document], client_id: str) -> Metrics:
    """All consumer metrics."""
    group = "consumer-fetch-manager-metrics"
    found = dict(_measure(group, CONSUMER, _total(documents), client_id))
    found.update(
        _measure("consumer-coordinator-metrics", COORDINATOR, _total(documents), client_id)
    )
    for node_id, series in _nodes(documents):
        tags = (("node-id", node_id),)
        found.update(_measure("consumer-node-metrics", NODE, series, client_id, tags))
    for topic, series in _topics(documents):
        tags = (("topic", topic),)
        found.update(_measure(group, CONSUMER_TOPIC, series, client_id, tags))
    for topic, partition, series in _partitions(documents):
        place = (("topic", topic), ("partition", partition))
        found.update(_measure(group, PARTITION, series, client_id, place))
    return found


def _measure(
    group: str,
    definitions: Iterable[Definition],
    series: Series,
    client_id: str,
    tags: tuple[tuple[str, str], ...] = (),
) -> Iterator[tuple[MetricName, Metric]]:
    for one in definitions:
        name = MetricName(one.name, group, one.description, (("client-id", client_id), *tags))
        yield name, Metric(name, one.value(series))


def _error_metrics(documents: list[Document], client_id: str, errors: int) -> Metrics:
    age_s = documents[-1]["age"] / 1e6 if documents else 0.0
    rate = errors / age_s if age_s else 0.0
    definitions = (
        Definition(
            "record-error-rate",
            "The average per-second number of record sends that resulted in errors.",
            lambda _: rate,
        ),
        Definition(
            "record-error-total",
            "The total number of record sends that resulted in errors.",
            lambda _: float(errors),
        ),
    )
    return dict(_measure("producer-metrics", definitions, Series(()), client_id))


def _time_s(document: Document) -> float:
    return float(document["ts"]) / 1e6


def _total(documents: list[Document]) -> Series:
    """The whole client: its own counters, and the brokers' and topics' added up."""
    return Series((_time_s(document), _summed(document)) for document in documents)


def _summed(document: Document) -> Document:
    brokers, topics = document["brokers"].values(), document["topics"].values()
    whole = {key: value for key, value in document.items() if key not in ("brokers", "topics")}
    for name in ("txretries", "waitresp_cnt", "connects", "req_timeouts"):
        whole[name] = sum(broker.get(name, 0) for broker in brokers)
    whole["connected"] = sum(broker.get("state") == "UP" for broker in brokers)
    whole["fetches"] = sum(broker.get("req", {}).get("Fetch", 0) for broker in brokers)
    for name in ("rtt", "int_latency", "throttle"):
        whole[name] = _merged(broker.get(name, {}) for broker in brokers)
    for name in ("batchsize", "batchcnt"):
        whole[name] = _merged(topic.get(name, {}) for topic in topics)
    whole["metadata_age_ms"] = max((topic.get("metadata_age", 0) for topic in topics), default=0)
    lags = [part.get("consumer_lag", -1) for topic in topics for part in _real_parts(topic)]
    whole["lag_max"] = max((lag for lag in lags if lag >= 0), default=math.nan)
    return whole


def _merged(distributions: Iterable[Document]) -> Document:
    """Several distributions as one, as far as sum, count and maximum go."""
    seen = [one for one in distributions if one.get("cnt")]
    return {
        "cnt": sum(one["cnt"] for one in seen),
        "sum": sum(one["sum"] for one in seen),
        "max": max((one["max"] for one in seen), default=0),
    }


def _real_parts(topic: Document) -> list[Document]:
    # Partition -1 holds what has no partition yet.
    return [part for name, part in topic["partitions"].items() if name != "-1"]


def _nodes(documents: list[Document]) -> Iterator[tuple[str, Series]]:
    """Brokers by node id; entries of the bootstrap list have negative ones, as in Kafka."""
    if not documents:
        return
    bootstrap = 0
    for name, broker in documents[-1]["brokers"].items():
        if broker["source"] == "internal":
            continue
        node_id = broker["nodeid"]
        if node_id < 0:
            bootstrap += 1
            node_id = -bootstrap
        parts = ((_time_s(d), d["brokers"][name]) for d in documents if name in d["brokers"])
        yield f"node-{node_id}", Series(parts)


def _topics(documents: list[Document]) -> Iterator[tuple[str, Series]]:
    for name in documents[-1]["topics"] if documents else ():
        parts = (
            (_time_s(d), _summed_topic(d["topics"][name])) for d in documents if name in d["topics"]
        )
        yield name, Series(parts)


def _summed_topic(topic: Document) -> Document:
    names = ("txmsgs", "txbytes", "rxmsgs", "rxbytes")
    return topic | {name: sum(p[name] for p in _real_parts(topic)) for name in names}


def _partitions(documents: list[Document]) -> Iterator[tuple[str, str, Series]]:
    for topic, found in documents[-1]["topics"].items() if documents else ():
        for part in _real_parts(found):
            if part["consumer_lag"] >= 0:
                yield topic, str(part["partition"]), Series([(0.0, part)])
