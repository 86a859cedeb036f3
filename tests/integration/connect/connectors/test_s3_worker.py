"""A topic to S3 and back through a worker on Spark, with its processes killed on the way."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess, kill, task_processes
from tests.support.connect_files import has_lines
from tests.support.moto_server import REGION, MotoProcess, moto_server
from tests.support.waiting import eventually

_WAIT_S = 300.0
_TOPIC = "orders"


@pytest.fixture
def moto(tmp_path: Path) -> Iterator[MotoProcess]:
    with moto_server(tmp_path) as process:
        process.client("s3").create_bucket(Bucket="backup")
        yield process


def produce(broker: BrokerProcess, lines: list[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    for line in lines:
        producer.produce(_TOPIC, line.encode(), partition=0)
    producer.flush(60)


def object_count(moto: MotoProcess) -> int:
    return len(moto.client("s3").list_objects_v2(Bucket="backup").get("Contents", []))


def stored_lines(moto: MotoProcess) -> list[str]:
    client, found = moto.client("s3"), []
    for one in client.list_objects_v2(Bucket="backup").get("Contents", []):
        body = client.get_object(Bucket="backup", Key=one["Key"])["Body"].read()
        found += [json.loads(line) for line in body.splitlines()]
    return found


def s3_config(moto: MotoProcess, kind: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": kind,
        "tasks.max": "1",
        "s3.bucket.name": "backup",
        "s3.region": REGION,
        "store.url": moto.url,
        "aws.access.key.id": "test",
        "aws.secret.access.key": "test",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        **more,
    }


def test_a_topic_goes_to_s3_and_back_once_though_processes_are_killed(
    moto: MotoProcess, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    lines = [f"order {n}" for n in range(2000)]
    names = {f"{what}.storage.topic": f"s3-{what}" for what in ("config", "offset", "status")}
    # A consumer that was killed is missed soon, and its partitions go to the next.
    quick = {"consumer.session.timeout.ms": "6000", "consumer.heartbeat.interval.ms": "500"}
    settings = {"group.id": "s3-workers", **names, **quick}
    with ConnectProcess(tmp_path / "connect", shared_broker.address, settings) as worker:
        produce(shared_broker, lines[:800])
        worker.start(timeout_s=_WAIT_S)
        config = s3_config(moto, "S3SinkConnector", topics=_TOPIC, **{"flush.size": "50"})
        assert worker.ask("PUT", "/connectors/out/config", config)[0] == 201
        eventually(lambda: object_count(moto) > 0, timeout_s=_WAIT_S, every_s=0.1)
        for process in task_processes(worker):
            kill(process.pid)
        produce(shared_broker, lines[800:1500])
        eventually(lambda: object_count(moto) > 18, timeout_s=_WAIT_S, every_s=0.1)
        worker.kill()  # With Spark, and before it has committed all it stored.
        produce(shared_broker, lines[1500:])
        worker.start(timeout_s=_WAIT_S)
        eventually(lambda: object_count(moto) == 40, timeout_s=_WAIT_S, every_s=0.1)
        assert sorted(stored_lines(moto)) == sorted(lines)
        back = s3_config(
            moto,
            "S3SourceConnector",
            transforms="route",
            **{
                "transforms.route.type": "RegexRouter",
                "transforms.route.regex": ".*",
                "transforms.route.replacement": "orders-again",
            },
        )
        assert worker.ask("PUT", "/connectors/back/config", back)[0] == 201
        eventually(
            lambda: has_lines(shared_broker, "orders-again", lines), timeout_s=_WAIT_S, every_s=0.3
        )
        assert worker.stop() == 0, worker.log_end
