"""Redis connectors against a real server: exactly once both ways."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from tests.support.processes import HOST, free_port
from tests.support.redis_server import RedisProcess, redis_server
from tests.support.waiting import eventually

from penstock.connect.connectors.redis.sink import RedisSinkConnector
from penstock.connect.connectors.redis.source import RedisStreamSourceConnector
from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError
from penstock.connect.testing import SinkRun, SourceRun
from penstock.connect.testing.checks import JSON
from penstock.records.topic_partition import TopicPartition


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def redis(server: RedisProcess) -> Iterator[Redis]:
    with Redis(host=HOST, port=server.port) as client:
        client.flushall()
        yield client


def bodies(run: SourceRun, topic: str) -> list[str]:
    return [json.loads(one)["body"]["n"] for one in run.values(topic)]


def add(redis: Redis, stream: str, numbers: range) -> None:
    for n in numbers:
        redis.xadd(stream, {"n": str(n)})


def test_wherever_it_is_stopped_no_entry_is_lost_or_comes_twice(
    server: RedisProcess, redis: Redis
) -> None:
    config = {"redis.uri": server.uri, "redis.stream.name": "a,b", "topic": "of-${stream}"}
    add(redis, "a", range(10))
    redis.xadd("b", {b"n": b"\xff"})
    with SourceRun(
        RedisStreamSourceConnector, {**config, "batch.size": "3"}, converters=JSON
    ) as run:
        run.poll()
        run.crash()
        run.poll()
        run.restart()
        add(redis, "a", range(10, 20))
        run.run_until(lambda: len(run.values("of-a")) >= 20)
        assert bodies(run, "of-a") == [str(n) for n in range(20)]
        assert bodies(run, "of-b") == ["\\xff"]
        last = redis.xrevrange("a", count=1)[0][0].decode()
        assert ({"stream": "a"}, {"offset": last}) in run.offsets
        assert run.keys("of-a")[-1] == f'"{last}"'


def test_it_can_begin_with_what_comes_from_now_on(server: RedisProcess, redis: Redis) -> None:
    config = {"redis.uri": server.uri, "redis.stream.name": "s", "redis.stream.offset": "$"}
    add(redis, "s", range(3))
    with SourceRun(RedisStreamSourceConnector, config, converters=JSON) as run:
        add(redis, "s", range(3, 5))
        run.run_until(lambda: len(run.values("s")) >= 2)
        assert bodies(run, "s") == ["3", "4"]


def test_a_server_that_goes_away_and_returns_is_read_on(tmp_path: Path) -> None:
    with redis_server(tmp_path) as own, Redis(host=HOST, port=own.port) as client:
        add(client, "s", range(3))
        config = {"redis.uri": own.uri, "redis.stream.name": "s"}
        with SourceRun(RedisStreamSourceConnector, config, converters=JSON) as run:
            run.run_until(lambda: len(run.values("s")) == 3)
            own.stop()
            with pytest.raises(RetriableConnectError, match="out of reach"):
                run.task.poll()
            own.start()
            add(client, "s", range(3, 6))
            run.run_until(lambda: len(run.values("s")) >= 6)
            assert bodies(run, "s") == [str(n) for n in range(6)]


def test_a_server_that_refuses_us_ends_the_task(tmp_path: Path, redis: Redis) -> None:
    with redis_server(tmp_path, "--requirepass", "secret") as own:
        config = {"redis.uri": own.uri, "redis.stream.name": "s"}
        refused = pytest.raises(ConnectError, match=r"(?i)refuse.*auth")
        with SourceRun(RedisStreamSourceConnector, config) as run, refused:
            run.task.poll()
        with SourceRun(RedisStreamSourceConnector, config | {"redis.password": "secret"}) as run:
            assert run.poll() == []


def sink(server: RedisProcess, command: str, **more: str) -> dict[str, str]:
    return {"name": "x", "redis.uri": server.uri, "redis.command": command, **more}


def test_each_command_writes_as_it_says(server: RedisProcess, redis: Redis) -> None:
    for command in ("SET", "HSET", "XADD", "RPUSH", "LPUSH", "SADD"):
        given = sink(server, command, **{"redis.keyspace": command, "name": command})
        with SinkRun(RedisSinkConnector, given, converters=JSON) as run:
            run.produce("t", b'{"a":1,"b":"x","c":null}', key=b'"k"')
            run.produce("t", b'{"a":2}', key=b'"gone"')
            run.produce("t", None, key=b'"gone"')
            run.deliver()
            run.commit()
            assert run.committed == {("t", 0): 3}
    assert redis.get("SET:k") == b'{"a":1,"b":"x","c":null}'
    assert redis.hgetall("HSET:k") == {b"a": b"1", b"b": b"x"}
    assert [fields for _, fields in redis.xrange("XADD")][1] == {b"a": b"2"}
    assert redis.lrange("RPUSH", 0, -1) == list(reversed(redis.lrange("LPUSH", 0, -1)))
    assert redis.scard("SADD") == 2
    assert redis.exists("SET:gone", "HSET:gone") == 0


def test_what_comes_again_after_a_crash_is_not_written_twice(
    server: RedisProcess, redis: Redis
) -> None:
    with SinkRun(RedisSinkConnector, sink(server, "RPUSH")) as run:
        for n in range(10):
            run.produce("t", str(n).encode())
        run.deliver()
        run.crash()  # Nothing was committed to the group; Redis knows better.
        run.produce("t", b"10")
        run.deliver()
        run._next.clear()  # As if another had rewound us behind our back.
        run.deliver()
        run.commit()
    assert redis.lrange("t", 0, -1) == [str(n).encode() for n in range(11)]
    assert redis.get("penstock:offsets:x:t:0") == b"11"


def test_offsets_can_be_altered(server: RedisProcess, redis: Redis) -> None:
    given, at = sink(server, "RPUSH"), TopicPartition("t", 0)
    assert RedisSinkConnector().alter_offsets(given, {at: 7})
    assert redis.get("penstock:offsets:x:t:0") == b"7"
    assert RedisSinkConnector().alter_offsets(given, {at: None})
    assert redis.get("penstock:offsets:x:t:0") is None


def test_what_redis_refuses_is_put_aside_or_ends_the_task_at_its_place(
    server: RedisProcess, redis: Redis
) -> None:
    redis.set("t:bad", "no hash")
    given = sink(server, "HSET")
    values = [(b'{"a":1}', b'"ok"'), (b'{"a":1}', b'"bad"'), (b"3", b'"k"'), (b'{"a":2}', b'"ok"')]
    with SinkRun(RedisSinkConnector, given | {"errors.tolerance": "all"}, converters=JSON) as run:
        for value, key in values:
            run.produce("t", value, key=key)
        run.deliver()
        assert sorted(one.offset for one, _ in run.dead) == [1, 2]
    assert redis.hgetall("t:ok") == {b"a": b"2"}
    with SinkRun(RedisSinkConnector, given | {"name": "y"}, converters=JSON) as run:
        run.produce("t", *values[0][:1], key=values[0][1])
        run.produce("t", values[1][0], key=values[1][1])
        with pytest.raises(DataError, match="t-0@1"):
            run.deliver()
    assert redis.get("penstock:offsets:y:t:0") == b"1"


def test_a_sink_waits_for_a_server_that_is_away(tmp_path: Path) -> None:
    with redis_server(tmp_path) as own, SinkRun(RedisSinkConnector, sink(own, "RPUSH")) as run:
        run.produce("t", b"one")
        run.deliver()
        own.stop()
        run.produce("t", b"two")
        with pytest.raises(RetriableConnectError):
            run.deliver(timeout_s=0)
        own.start()
        run.deliver()
        with Redis(host=HOST, port=own.port) as client:
            assert eventually(lambda: client.lrange("t", 0, -1)) == [b"one", b"two"]


def test_nobody_there_is_a_reason_to_try_again() -> None:
    config = {"redis.uri": f"redis://{HOST}:{free_port()}", "redis.stream.name": "s"}
    later = pytest.raises(RetriableConnectError, match="out of reach")
    with SourceRun(RedisStreamSourceConnector, config) as run, later:
        run.task.poll()
