"""Producer settings of a write: each is honoured, or refused by its name."""

import pytest

from penstock.records.compression import Codec
from penstock.spark.options import OptionError
from penstock.spark.sink.settings import SinkSettings, sink_settings


def settings(exactly_once: bool = True, **given: str) -> SinkSettings:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return sink_settings({"bootstrap.servers": "h:1", **named}, exactly_once=exactly_once)


def test_defaults_are_safe() -> None:
    found = settings()
    assert found.produce.acks == -1
    assert found.is_idempotent
    assert found.codec is Codec.NONE
    assert found.linger_ms is None
    assert found.transaction_timeout_ms == 900_000


def test_what_is_given_is_used() -> None:
    found = settings(
        acks="1",
        exactly_once=False,
        batch_size="2000",
        linger_ms="7",
        compression_type="zstd",
        compression_zstd_level="9",
        compression_gzip_level="1",
        max_request_size="5000",
        delivery_timeout_ms="4000",
        request_timeout_ms="300",
        retries="2",
        retry_backoff_ms="11",
        max_block_ms="12",
        buffer_memory="13",
        client_id="me",
        security_protocol="SSL",
        ssl_ca_location="/ca",
    )
    assert (found.produce.acks, found.is_idempotent) == (1, False)
    assert (found.batch_bytes, found.linger_ms, found.buffer_bytes) == (2000, 7, 13)
    assert (found.codec, found.level) == (Codec.ZSTD, 9)
    produce = found.produce
    assert (produce.request_bytes_max, produce.delivery_timeout_ms) == (5000, 4000)
    assert (produce.request_timeout_ms, produce.retries) == (300, 2)
    assert (produce.retry_backoff_ms, produce.max_block_ms) == (11, 12)
    assert found.connection == {
        "bootstrap.servers": "h:1",
        "client.id": "me",
        "request.timeout.ms": "300",
        "retry.backoff.ms": "11",
        "security.protocol": "SSL",
        "ssl.ca.location": "/ca",
        "default.api.timeout.ms": "4000",
    }


def test_a_batch_is_never_larger_than_a_request() -> None:
    assert settings(batch_size="9000000", max_request_size="1000").batch_bytes == 1000


@pytest.mark.parametrize(
    ("name", "is_keyless", "is_round_robin"),
    [
        ("org.apache.kafka.clients.producer.RoundRobinPartitioner", False, True),
        ("org.apache.kafka.clients.producer.UniformStickyPartitioner", True, False),
        ("org.apache.kafka.clients.producer.internals.DefaultPartitioner", False, False),
    ],
)
def test_kafkas_partitioners_are_known(name: str, is_keyless: bool, is_round_robin: bool) -> None:
    found = settings(partitioner_class=name)
    assert (found.ignore_keys, found.round_robin) == (is_keyless, is_round_robin)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("acks", "0", "must be all or 1"),
        ("acks", "1", "exactly once"),
        ("acks", "2", "must be all, -1, 1 or 0, not '2'"),
        ("enable.idempotence", "false", "exactly once"),
        ("max.in.flight.requests.per.connection", "6", "at most 5"),
        ("compression.type", "brotli", "must be none, gzip, snappy, lz4 or zstd"),
        ("compression.gzip.level", "10", "at most 9"),
        ("batch.size", "many", "must be a number"),
        ("linger.ms", "-1", "at least 0"),
        ("transactional.id", "x", "transactionalIdPrefix"),
        ("group.id", "x", "a write reads nothing"),
        ("partitioner.class", "com.example.Mine", "the column 'partition'"),
        ("send.buffer.bytes", "1", "not honoured"),
        ("batch.szie", "1", r"did you mean 'kafka\.batch\.size'"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(name: str, value: str, said: str) -> None:
    with pytest.raises(OptionError, match=said) as refused:
        sink_settings({"bootstrap.servers": "h:1", name: value}, exactly_once=True)
    assert f"kafka.{name}" in str(refused.value) or "idempotence" in str(refused.value)
