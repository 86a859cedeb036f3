"""The metrics of Kafka's clients: their names, what they tell, and how they are computed."""

import math
from collections.abc import Callable
from typing import NamedTuple

from penstock.client.metrics.statistics import Series

_US_PER_MS = 1000
_RECORD_OVERHEAD_BYTES = 8  # Lengths, deltas and the count of headers, where they are small.
_BATCH_OVERHEAD_BYTES = 61


class Definition(NamedTuple):
    """A metric: its name, what it tells, and how it comes out of a series."""

    name: str
    description: str
    value: Callable[[Series], float]


def _compression_rate(series: Series, bytes_name: str) -> float:
    """Bytes of batches by the bytes they would have uncompressed.

    librdkafka counts keys and values only; what frames them is added by estimate.
    """
    plain = series.growth(bytes_name) + _RECORD_OVERHEAD_BYTES * series.growth("txmsgs")
    plain += _BATCH_OVERHEAD_BYTES * series.count("batchsize")
    return series.total("batchsize") / plain if plain else math.nan


_LATENCY = (
    Definition(
        "request-latency-avg",
        "The average request latency in ms",
        lambda s: s.average("rtt") / _US_PER_MS,
    ),
    Definition(
        "request-latency-max",
        "The maximum request latency in ms",
        lambda s: s.highest("rtt") / _US_PER_MS,
    ),
)

_REQUESTS = (
    Definition("request-rate", "The number of requests sent per second", lambda s: s.rate("tx")),
    Definition("request-total", "The total number of requests sent", lambda s: s.last("tx")),
    Definition(
        "response-rate", "The number of responses received per second", lambda s: s.rate("rx")
    ),
    Definition("response-total", "The total number of responses received", lambda s: s.last("rx")),
    *_LATENCY,
)

NODE = (
    *_REQUESTS,
    Definition(
        "request-size-avg",
        "The average size of requests sent.",
        lambda s: s.ratio("txbytes", "tx"),
    ),
    Definition(
        "request-size-max",
        "The maximum size of any request sent.",
        lambda s: s.peak("txbytes", "tx"),
    ),
    Definition(
        "incoming-byte-rate",
        "The number of bytes received per second",
        lambda s: s.rate("rxbytes"),
    ),
    Definition(
        "outgoing-byte-rate",
        "The number of outgoing bytes per second",
        lambda s: s.rate("txbytes"),
    ),
)

_CLIENT = (
    *_REQUESTS,
    Definition(
        "request-size-avg",
        "The average size of requests sent.",
        lambda s: s.ratio("tx_bytes", "tx"),
    ),
    Definition(
        "request-size-max",
        "The maximum size of any request sent.",
        lambda s: s.peak("tx_bytes", "tx"),
    ),
    Definition(
        "incoming-byte-rate",
        "The number of bytes received per second",
        lambda s: s.rate("rx_bytes"),
    ),
    Definition(
        "outgoing-byte-rate",
        "The number of outgoing bytes per second",
        lambda s: s.rate("tx_bytes"),
    ),
    Definition(
        "connection-count",
        "The current number of active connections.",
        lambda s: s.last("connected"),
    ),
    Definition(
        "connection-creation-total",
        "The total number of new connections established",
        lambda s: s.last("connects"),
    ),
    Definition(
        "metadata-age",
        "The age in seconds of the current producer metadata being used.",
        lambda s: s.last("metadata_age_ms") / 1000,
    ),
)

PRODUCER = (
    *_CLIENT,
    Definition(
        "record-send-rate",
        "The average number of records sent per second.",
        lambda s: s.rate("txmsgs"),
    ),
    Definition(
        "record-send-total", "The total number of records sent.", lambda s: s.last("txmsgs")
    ),
    Definition(
        "byte-rate", "The average number of bytes sent per second.", lambda s: s.rate("txmsg_bytes")
    ),
    Definition(
        "record-retry-rate",
        "The average per-second number of retried record sends",
        lambda s: s.rate("txretries"),
    ),
    Definition(
        "record-retry-total",
        "The total number of retried record sends",
        lambda s: s.last("txretries"),
    ),
    Definition(
        "record-queue-time-avg",
        "The average time in ms record batches spent in the send buffer.",
        lambda s: s.average("int_latency") / _US_PER_MS,
    ),
    Definition(
        "record-queue-time-max",
        "The maximum time in ms record batches spent in the send buffer.",
        lambda s: s.highest("int_latency") / _US_PER_MS,
    ),
    Definition(
        "record-size-avg", "The average record size", lambda s: s.ratio("txmsg_bytes", "txmsgs")
    ),
    Definition(
        "record-size-max", "The maximum record size", lambda s: s.peak("txmsg_bytes", "txmsgs")
    ),
    Definition(
        "records-per-request-avg",
        "The average number of records per request.",
        lambda s: s.average("batchcnt"),
    ),
    Definition(
        "batch-size-avg",
        "The average number of bytes sent per partition per-request.",
        lambda s: s.average("batchsize"),
    ),
    Definition(
        "batch-size-max",
        "The max number of bytes sent per partition per-request.",
        lambda s: s.highest("batchsize"),
    ),
    Definition(
        "compression-rate-avg",
        "The average compression rate of record batches, defined as the average ratio of the "
        "compressed batch size over the uncompressed size.",
        lambda s: _compression_rate(s, "txmsg_bytes"),
    ),
    Definition(
        "produce-throttle-time-avg",
        "The average time in ms a request was throttled by a broker",
        lambda s: s.average("throttle"),
    ),
    Definition(
        "produce-throttle-time-max",
        "The maximum time in ms a request was throttled by a broker",
        lambda s: s.highest("throttle"),
    ),
    Definition(
        "requests-in-flight",
        "The current number of in-flight requests awaiting a response.",
        lambda s: s.last("waitresp_cnt"),
    ),
    Definition(
        "buffer-total-bytes",
        "The maximum amount of buffer memory the client can use.",
        lambda s: s.last("msg_size_max"),
    ),
    Definition(
        "buffer-available-bytes",
        "The total amount of buffer memory that is not being used.",
        lambda s: s.last("msg_size_max") - s.last("msg_size"),
    ),
)

TOPIC = (
    Definition(
        "record-send-rate",
        "The average number of records sent per second for a topic.",
        lambda s: s.rate("txmsgs"),
    ),
    Definition(
        "record-send-total",
        "The total number of records sent for a topic.",
        lambda s: s.last("txmsgs"),
    ),
    Definition(
        "byte-rate",
        "The average number of bytes sent per second for a topic.",
        lambda s: s.rate("txbytes"),
    ),
    Definition(
        "byte-total",
        "The total number of bytes sent for a topic.",
        lambda s: s.last("txbytes"),
    ),
    Definition(
        "compression-rate",
        "The average compression rate of record batches for a topic, defined as the average ratio "
        "of the compressed batch size over the uncompressed size.",
        lambda s: _compression_rate(s, "txbytes"),
    ),
)

CONSUMER = (
    *_CLIENT,
    Definition(
        "records-consumed-rate",
        "The average number of records consumed per second",
        lambda s: s.rate("rxmsgs"),
    ),
    Definition(
        "records-consumed-total",
        "The total number of records consumed",
        lambda s: s.last("rxmsgs"),
    ),
    Definition(
        "bytes-consumed-rate",
        "The average number of bytes consumed per second",
        lambda s: s.rate("rxmsg_bytes"),
    ),
    Definition(
        "bytes-consumed-total",
        "The total number of bytes consumed",
        lambda s: s.last("rxmsg_bytes"),
    ),
    Definition(
        "fetch-rate", "The number of fetch requests per second.", lambda s: s.rate("fetches")
    ),
    Definition("fetch-total", "The total number of fetch requests.", lambda s: s.last("fetches")),
    Definition(
        "fetch-latency-avg",
        "The average time taken for a fetch request.",
        lambda s: s.average("rtt") / _US_PER_MS,
    ),
    Definition(
        "fetch-latency-max",
        "The max time taken for any fetch request.",
        lambda s: s.highest("rtt") / _US_PER_MS,
    ),
    Definition(
        "fetch-throttle-time-avg",
        "The average throttle time in ms",
        lambda s: s.average("throttle"),
    ),
    Definition(
        "records-lag-max",
        "The maximum lag in terms of number of records for any partition in this window.",
        lambda s: s.last("lag_max"),
    ),
)

CONSUMER_TOPIC = (
    Definition(
        "records-consumed-rate",
        "The average number of records consumed per second for a topic",
        lambda s: s.rate("rxmsgs"),
    ),
    Definition(
        "records-consumed-total",
        "The total number of records consumed for a topic",
        lambda s: s.last("rxmsgs"),
    ),
    Definition(
        "bytes-consumed-rate",
        "The average number of bytes consumed per second for a topic",
        lambda s: s.rate("rxbytes"),
    ),
    Definition(
        "bytes-consumed-total",
        "The total number of bytes consumed for a topic",
        lambda s: s.last("rxbytes"),
    ),
)

PARTITION = (
    Definition("records-lag", "The latest lag of the partition", lambda s: s.last("consumer_lag")),
)

COORDINATOR = (
    Definition(
        "assigned-partitions",
        "The number of partitions currently assigned to this consumer",
        lambda s: s.last("cgrp", "assignment_size"),
    ),
    Definition(
        "rebalance-total",
        "The total number of successful rebalance events, each event is composed of several "
        "failed re-trials until it succeeded",
        lambda s: s.last("cgrp", "rebalance_cnt"),
    ),
    Definition(
        "last-rebalance-seconds-ago",
        "The number of seconds since the last successful rebalance event",
        lambda s: s.last("cgrp", "rebalance_age") / 1000,
    ),
)
