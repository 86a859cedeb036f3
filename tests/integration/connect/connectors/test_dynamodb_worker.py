"""DynamoDB's changes through a worker on Spark, with its processes killed on the way."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess, kill, task_processes
from tests.support.connect_files import values_of
from tests.support.moto_server import REGION, MotoProcess, moto_server
from tests.support.waiting import eventually

from penstock.connect.testing.checks import JSON

_WAIT_S = 300.0
_TABLE = "orders"


@pytest.fixture
def moto(tmp_path: Path) -> Iterator[MotoProcess]:
    with moto_server(tmp_path) as process:
        process.client("dynamodb").create_table(
            TableName=_TABLE,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
        yield process


def put(moto: MotoProcess, numbers: range) -> None:
    client = moto.client("dynamodb")
    for n in numbers:
        client.put_item(TableName=_TABLE, Item={"id": {"N": str(n)}})


def has_changes(broker: BrokerProcess, count: int) -> bool:
    """Whether exactly so many are there, in their order; more of them no wait can mend."""
    found = [json.loads(one)["after"]["id"] for one in values_of(broker, f"dyn.{_TABLE}")]
    assert found == [str(n) for n in range(len(found))]
    assert len(found) <= count
    return len(found) == count


def test_changes_arrive_once_though_processes_are_killed(
    moto: MotoProcess, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    names = {f"{what}.storage.topic": f"dyn-{what}" for what in ("config", "offset", "status")}
    config = {
        "connector.class": "DynamoDbSource",
        "dynamodb.tables": _TABLE,
        "dynamodb.region": REGION,
        "dynamodb.service.endpoint": moto.url,
        "aws.access.key.id": "test",
        "aws.secret.access.key": "test",
        "topic.prefix": "dyn",
        "snapshot.mode": "never",
        "stream.records.max": "7",
        "max.batch.size": "7",
        **JSON,
    }
    settings = {"group.id": "dyn-workers", **names}
    with ConnectProcess(tmp_path / "connect", shared_broker.address, settings) as worker:
        put(moto, range(200))
        worker.start(timeout_s=_WAIT_S)
        assert worker.ask("PUT", "/connectors/dyn/config", config)[0] == 201
        eventually(lambda: values_of(shared_broker, f"dyn.{_TABLE}"), timeout_s=_WAIT_S)
        for process in task_processes(worker):
            kill(process.pid)
        put(moto, range(200, 300))
        eventually(lambda: has_changes(shared_broker, 300), timeout_s=_WAIT_S, every_s=0.3)
        worker.kill()  # With Spark.
        put(moto, range(300, 400))
        worker.start(timeout_s=_WAIT_S)
        eventually(lambda: has_changes(shared_broker, 400), timeout_s=_WAIT_S, every_s=0.3)
        assert worker.stop() == 0, worker.log_end
