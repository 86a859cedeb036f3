"""EndTxn: a transaction from its first partition to its end."""

import pytest
from tests.unit.broker.handlers.transactional_client import Client

from penstock.errors import ErrorCode


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_written_and_committed(client: Client, version: int) -> None:
    assert client.add("orders", 0, 1, version=version) == [0, 0]
    assert client.describe().transaction_state == "Ongoing"
    assert client.produce(0) == ErrorCode.NONE
    log = client.served.partition("orders").log
    assert (log.last_stable_offset, log.log_end_offset) == (0, 1)
    assert client.end(version=version) == ErrorCode.NONE
    assert (log.last_stable_offset, log.log_end_offset) == (2, 2)
    assert client.describe().transaction_state == "CompleteCommit"


def test_the_end_of_a_newer_client_may_be_asked_for_twice(client: Client) -> None:
    before = client.who
    client.produce(0, version=12)
    assert client.end(version=5) == ErrorCode.NONE
    after, client.who = client.who, before
    assert client.end(version=5) == ErrorCode.NONE
    assert client.who == after
    client.who = before
    assert client.end(committed=False, version=5) == ErrorCode.INVALID_TXN_STATE
