"""Apache Kafka's own client in both transaction versions, and its own reading of our state log."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.broker import BrokerProcess
from tests.support.fixtures import StartBroker
from tests.support.java import compiled, run_java
from tests.support.outside import needs
from tests.support.processes import HOST
from tests.support.wire import RawConnection

from penstock.client.wire.connection import BrokerConnection
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
from penstock.transactions.transaction import TransactionState

PROGRAM = Path(__file__).parent / "java" / "Transactions.java"
TOPIC = "orders"
CURRENT, OLDER = "kafka-4.3.1", "kafka-3.9.1"
KEPT = [0, 2, 4]

pytestmark = pytest.mark.kafka


def run(broker: BrokerProcess, jars: str) -> list[str]:
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(TOPIC, partitions=3) == 0
    class_path = compiled(PROGRAM, needs(jars))
    return run_java(class_path, "Transactions", broker.address, TOPIC).splitlines()


def epoch_of(broker: BrokerProcess) -> int:
    with BrokerConnection(HOST, broker.port) as connection:
        request = DescribeTransactionsRequest(transactional_ids=["java"])
        (state,) = connection.request(request).transaction_states
    assert state.transaction_state == "CompleteCommit"
    return int(state.producer_epoch)


@pytest.mark.parametrize(
    ("jars", "epochs"),
    [
        # Six transactions, each with its epoch, two to fence the next, one for the successor,
        # and one for its transaction.
        (CURRENT, 6 + 2 + 1 + 1),
        # Only fencing and the successor take epochs.
        (OLDER, 2 + 1),
    ],
)
def test_the_java_client_commits_aborts_and_is_fenced(
    start_broker: StartBroker, jars: str, epochs: int
) -> None:
    broker = start_broker()
    lines = run(broker, jars)
    assert lines == [
        "fenced",
        "committed 4",
        " ".join([*(f"{number}/0" for number in KEPT), "successor"]),
        " ".join(f"{number}/1" for number in KEPT),
        " ".join(f"{number}/2" for number in KEPT),
    ]
    assert epoch_of(broker) == epochs
    assert broker.tracebacks() == {}


def test_kafkas_own_decoder_reads_our_state_log(start_broker: StartBroker) -> None:
    broker = start_broker()
    run(broker, CURRENT)
    assert broker.stop() == 0
    records = decoded(broker, needs(CURRENT))
    assert {record["version"] for record in records} == {"1"}
    values = [record["data"] for record in records]
    statuses = [TransactionState(value["transactionStatus"]) for value in values]
    assert statuses[0] is TransactionState.EMPTY
    assert statuses[-3:] == [
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.COMPLETE_COMMIT,
    ]
    epochs = [value["producerEpoch"] for value in values]
    assert epochs == sorted(epochs)
    assert {value["producerId"] for value in values} == {
        value["previousProducerId"] for value in values
    }
    last = values[-2]
    assert last["transactionPartitions"] == [{"topic": TOPIC, "partitionIds": [0]}]
    assert last["clientTransactionVersion"] == 2


def decoded(broker: BrokerProcess, jars: Path) -> list[dict[str, Any]]:
    """The values in our state log, as Kafka's dump tool prints them."""
    logs = broker.data.glob("__transaction_state-*/*.log")
    files = ",".join(str(path) for path in sorted(logs) if path.stat().st_size)
    command = ["java", "-Xmx256m", "-cp", f"{jars}/*", "org.apache.kafka.tools.DumpLogSegments"]
    command += ["--transaction-log-decoder", "--files", files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(found) for found in re.findall(r" payload: (\{.*\})", done.stdout)]
