"""The sink dies at every few requests and starts again, on an Apache Kafka: its rules are the same.

It also tells whether transactions that a second client ends, and offsets of groups that never had
members, are what we take them for.
"""

from collections.abc import Iterator

import pytest
from tests.integration.spark.crashing import Plug
from tests.integration.spark.test_exactly_once_steps import (
    TASKS,
    crash_and_replay,
    requests_of_a_batch,
)
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.outside import needs

from penstock.client.wire import transaction_control

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaProcess]:
    directory = tmp_path_factory.mktemp("kafka")
    with KafkaProcess(needs(CURRENT), directory, {"num.partitions": "3"}) as running:
        running.start()
        yield running


@pytest.mark.parametrize("own_epochs", [True, False], ids=["own epochs", "one epoch"])
def test_death_at_any_request_neither_loses_nor_doubles_a_row(
    kafka: KafkaProcess, monkeypatch: pytest.MonkeyPatch, own_epochs: bool
) -> None:
    with pytest.MonkeyPatch.context() as older:
        if not own_epochs:
            older.setattr(transaction_control, "_gives_epochs", lambda cluster, node: False)
        steps = requests_of_a_batch(monkeypatch, kafka.address, f"measured-{own_epochs}")
        assert ("AddPartitionsToTxnRequest" in steps) != own_epochs
        for at in range(0, len(steps) + 1, 4):
            plugs = [Plug(at=at, is_sent_first=at % 8 == 0), Plug()]
            topic = f"t{at}-{own_epochs}"
            crash_and_replay(monkeypatch, kafka.address, topic, plugs, [TASKS, 2])
