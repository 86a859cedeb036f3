"""AddPartitionsToTxn, of clients and of brokers."""

import pytest
from tests.unit.broker.handlers.transactional_client import Client

from penstock.errors import ErrorCode
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
)


def test_nothing_is_added_when_one_partition_is_not_there(client: Client) -> None:
    topics = [
        AddPartitionsToTxnTopic(name="orders", partitions=[0, 9]),
        AddPartitionsToTxnTopic(name="nowhere", partitions=[0]),
    ]
    unknown, not_tried = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert client.add_topics(topics) == [not_tried, unknown, unknown]
    assert client.describe().transaction_state == "Empty"


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)],
)
def test_a_fenced_producer_neither_adds_nor_ends(
    client: Client, version: int, error: ErrorCode
) -> None:
    fenced = client.who
    client.add()
    client.init()
    client.who = fenced
    assert client.add("orders", 0, 1, version=version) == [error, error]
    assert client.add_offsets(version) == error
    assert client.end(version=version) == error


def test_a_stranger_is_told_that_the_id_is_not_its_own(client: Client) -> None:
    client.who = (client.who[0] + 1, 0)
    error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert client.add() == [error]
    assert client.end() == error


def test_brokers_add_for_clients_and_ask_for_others(client: Client) -> None:
    assert client.batched(0) == [ErrorCode.NONE]
    asked = client.batched(0, 1, verify_only=True)
    assert asked == [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]
    asked = client.batched(0, 1, verify_only=True, version=4)
    assert asked == [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE]
    assert client.describe().topics[0].partitions == [0]
