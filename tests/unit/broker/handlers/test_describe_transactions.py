"""DescribeTransactions: one transaction, as its coordinator knows it."""

from tests.unit.broker.handlers.transactional_client import Client

from penstock.errors import ErrorCode
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest


def test_a_transaction_is_described(client: Client) -> None:
    client.add("orders", 2, 0)
    client.add_offsets()
    state = client.describe()
    assert state.error_code == ErrorCode.NONE
    assert (state.producer_id, state.producer_epoch) == client.who
    assert state.transaction_timeout_ms == 60_000
    assert abs(state.transaction_start_time_ms - client.served.broker.now_ms()) < 10_000
    topics = {topic.topic: topic.partitions for topic in state.topics}
    assert topics["orders"] == [0, 2]
    assert len(topics["__consumer_offsets"]) == 1


def test_an_unknown_id_is_not_found(client: Client) -> None:
    request = DescribeTransactionsRequest(transactional_ids=["unknown", ""])
    states = client.served.ask(request, 0).transaction_states
    assert [state.error_code for state in states] == [
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.INVALID_REQUEST,
    ]
