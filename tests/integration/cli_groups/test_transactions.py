"""kafka-transactions: transactions under way, ended, and hanging."""

from collections.abc import Callable

import confluent_kafka
import pytest
from tests.integration.cli.conftest import Tool
from tests.integration.cli_groups.conftest import Cluster
from tests.support.batches import batch
from tests.support.broker import BrokerProcess
from tests.support.wire import RawConnection

from penstock.client.wire.connection import BrokerConnection
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

TRANSACTIONAL = 0x10  # In the attributes of a batch.
LONG_AGO_MS = 1_700_000_000_000


def cells(text: str) -> list[dict[str, str]]:
    """The rows of a table by the names of their columns."""
    header, *rows = [line.rstrip("\n").split("\t")[:-1] for line in text.splitlines()]
    names = [name.strip() for name in header]
    return [dict(zip(names, (cell.strip() for cell in row), strict=True)) for row in rows]


Open = Callable[..., confluent_kafka.Producer]


@pytest.fixture
def begin(cluster: Cluster) -> Open:
    """Begins a transaction with one record."""

    def start(name: str, topic: str, partition: int = 0) -> confluent_kafka.Producer:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": cluster.address,
                "transactional.id": name,
                "error_cb": lambda _: None,
                "log_level": 0,
            }
        )
        producer.init_transactions(120)
        producer.begin_transaction()
        producer.produce(topic, b"x", partition=partition)
        assert producer.flush(120) == 0
        return producer

    return start


@pytest.fixture
def hanging(broker: BrokerProcess, cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic with a transaction in it that no coordinator knows of, at offset 1."""
    topic = cluster.create(f"hangs-{request.node.name[:40]}", records=1)
    with RawConnection(broker.port) as raw:
        producer = raw.init_producer_id()
        lost = batch(
            [b"lost"],
            producer=producer,
            sequence=0,
            attributes=TRANSACTIONAL,
            timestamp=LONG_AGO_MS,
        )
        assert produce_in_transaction(broker.port, topic, lost) == 1
        assert raw.produce_one(topic, batch([b"behind"])) == 2
    return topic


def produce_in_transaction(port: int, topic: str, records: bytes) -> int:
    """Produce as an old client does that has told its coordinator nothing; the offset."""
    request = ProduceRequest(
        transactional_id="ghost",
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=records)]
            )
        ],
    )
    with BrokerConnection("127.0.0.1", port) as connection:
        answer = connection.ask(request, ProduceResponse, version=9)
    stored = answer.responses[0].partition_responses[0]
    assert stored.error_code == 0
    return stored.base_offset


def test_transactions_are_listed_with_their_state(
    tool: Tool, cluster: Cluster, begin: Open
) -> None:
    topic = cluster.create("listed-txn")
    under_way = begin("list-a", topic)
    begin("list-bb", topic).commit_transaction(120)
    found = {row["TransactionalId"]: row for row in cells(tool("transactions", "list").out)}
    assert found["list-a"]["TransactionState"] == "Ongoing"
    assert found["list-bb"]["TransactionState"] == "CompleteCommit"
    assert found["list-a"]["Coordinator"] == "0"
    assert found["list-a"]["ProducerId"] != found["list-bb"]["ProducerId"]
    words = ["list", "--transactional-id-pattern", "list-b+"]
    assert [row["TransactionalId"] for row in cells(tool("transactions", *words).out)] == [
        "list-bb"
    ]
    assert cells(tool("transactions", "list", "--duration-filter", "3600000").out) == []
    under_way.abort_transaction(120)


def test_a_transaction_is_described_with_its_partitions(
    tool: Tool, cluster: Cluster, begin: Open
) -> None:
    topic = cluster.create("described-txn", 2)
    producer = begin("describe-me", topic, partition=1)
    words = ["describe", "--transactional-id", "describe-me"]
    row = cells(tool("transactions", *words).out)[0]
    assert row["TransactionState"] == "Ongoing"
    assert row["TopicPartitions"] == f"{topic}-1"
    assert 0 <= int(row["TransactionDurationMs"]) < 60_000
    words = ["describe-producers", "--topic", topic, "--partition", 1]
    known = cells(tool("transactions", *words).out)[0]
    assert (known["ProducerId"], known["LastSequence"]) == (row["ProducerId"], "0")
    assert known["CurrentTransactionStartOffset"] == "0"
    producer.commit_transaction(120)
    known = cells(tool("transactions", *words, "--broker-id", 0).out)[0]
    assert known["CurrentTransactionStartOffset"] == "None"


def test_a_hanging_transaction_is_found_and_aborted(tool: Tool, hanging: str) -> None:
    read = ["--topic", hanging, "--from-beginning", "--isolation-level", "read_committed"]
    assert tool("console-consumer", *read, "--timeout-ms", "2000").lines == ["v0"]
    for scope in (["--topic", hanging], ["--topic", hanging, "--partition", 0], ["--broker-id", 0]):
        rows = cells(tool("transactions", "find-hanging", *scope).out)
        found = next(row for row in rows if row["Topic"] == hanging)
        assert (found["Partition"], found["StartOffset"]) == ("0", "1")
        assert found["LastTimestamp"] == str(LONG_AGO_MS)
        assert int(found["Duration(min)"]) > 15
    at = ["--topic", hanging, "--partition", 0]
    assert tool("transactions", "abort", *at, "--start-offset", 1).out == ""
    assert cells(tool("transactions", "find-hanging", "--topic", hanging).out) == []
    assert tool("console-consumer", *read, "--max-messages", 2).lines == ["v0", "behind"]
    done = tool("transactions", "abort", *at, "--start-offset", 1, code=1)
    assert done.err == (
        f"Could not find any open transactions starting at offset 1 on partition {hanging}-0\n"
    )


def test_a_hanging_transaction_is_aborted_by_its_producer_too(tool: Tool, hanging: str) -> None:
    row = cells(tool("transactions", "find-hanging", "--topic", hanging).out)[0]
    words = ["--producer-id", row["ProducerId"], "--producer-epoch", row["ProducerEpoch"]]
    words += ["--coordinator-epoch", row["CoordinatorEpoch"]]
    tool("transactions", "abort", "--topic", hanging, "--partition", 0, *words)
    assert cells(tool("transactions", "find-hanging", "--topic", hanging).out) == []


def test_a_transaction_under_way_does_not_hang(tool: Tool, cluster: Cluster, begin: Open) -> None:
    topic = cluster.create("in-hand")
    producer = begin("in-hand", topic)
    words = ["find-hanging", "--topic", topic, "--max-transaction-timeout", "0"]
    assert cells(tool("transactions", *words).out) == []
    producer.abort_transaction(120)


def test_a_transaction_is_ended_by_force(tool: Tool, cluster: Cluster, begin: Open) -> None:
    producer = begin("stubborn", cluster.create("stubborn"))
    tool("transactions", "forceTerminateTransaction", "--transactionalId", "stubborn")
    row = cells(tool("transactions", "describe", "--transactional-id", "stubborn").out)[0]
    assert row["TransactionState"] != "Ongoing"
    assert row["TopicPartitions"] == ""
    with pytest.raises(confluent_kafka.KafkaException, match=r"(?i)fenced|epoch"):
        producer.commit_transaction(120)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["describe", "--transactional-id", "nobody"],
            "Failed to describe transaction state of transactional-id `nobody`: "
            "The transactional id does not exist.",
        ),
        (
            ["describe-producers", "--topic", "nowhere", "--partition", "0"],
            "Failed to describe producers for partition nowhere-0 on leader: "
            "Topic 'nowhere' does not exist.",
        ),
        (
            ["abort", "--topic", "nowhere", "--partition", "0", "--start-offset", "0"],
            "Failed to validate producer state for partition nowhere-0: "
            "Topic 'nowhere' does not exist.",
        ),
        (["find-hanging", "--topic", "nowhere"], "Topic 'nowhere' does not exist."),
        (["find-hanging", "--broker-id", "7"], "Broker 7 is not part of the cluster now."),
    ],
)
def test_what_cannot_be_done_is_one_sentence(tool: Tool, words: list[str], sentence: str) -> None:
    assert tool("transactions", *words, code=1).err == f"{sentence}\n"
