"""The settings of the Redis connectors: all errors at once, and streams shared out."""

import pytest

from penstock.connect.connectors.redis.sink import RedisSinkConnector
from penstock.connect.connectors.redis.source import RedisStreamSourceConnector
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.testing import refused_settings


def test_all_that_is_wrong_is_told_at_once() -> None:
    wrong = {"redis.uri": "http://h", "redis.stream.offset": "x", "redis.stream.block": "0"}
    assert sorted(refused_settings(RedisStreamSourceConnector, wrong)) == [
        *("redis.stream.block", "redis.stream.name", "redis.stream.offset", "redis.uri"),
    ]
    assert sorted(refused_settings(RedisSinkConnector, {"redis.uri": "redis://h/x"})) == [
        *("redis.command", "redis.uri"),
    ]
    store = {"redis.ssl.truststore.location": "/no.pem", "redis.command": "SET"}
    assert list(refused_settings(RedisSinkConnector, store)) == ["redis.ssl.truststore.location"]


def test_streams_are_dealt_out() -> None:
    connector = RedisStreamSourceConnector()
    connector.start({"redis.stream.name": "a,b,c"})
    assert [one["redis.stream.name"] for one in connector.task_configs(2)] == ["a,c", "b"]


def test_offsets_that_cannot_be_used_are_refused() -> None:
    connector, config = RedisStreamSourceConnector(), {"redis.stream.name": "s"}
    named = frozenset({("stream", "s")})
    assert connector.alter_offsets(config, {named: {"offset": "1-0"}, frozenset(): None})
    for partition, offset in (
        (named, {"offset": "$"}),
        (named, {}),
        (frozenset(), {"offset": "1"}),
    ):
        with pytest.raises(ConnectError):
            connector.alter_offsets(config, {partition: offset})
