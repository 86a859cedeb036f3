"""DescribeTransactions: the state of transactions by id."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string


class DescribeTransactionsRequest(Request, api=ApiKey.DESCRIBE_TRANSACTIONS):
    """Transactions to describe."""

    transactional_ids: list[str] = array(string, "0+")


class TopicData(Struct):
    """A topic and the partitions written."""

    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class TransactionState(Struct):
    """A transaction, its producer and what it has written."""

    error_code: int = int16("0+")
    transactional_id: str = string("0+")
    transaction_state: str = string("0+")
    transaction_timeout_ms: int = int32("0+")
    transaction_start_time_ms: int = int64("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    topics: list[TopicData] = array(TopicData, "0+")


class DescribeTransactionsResponse(Response, api=ApiKey.DESCRIBE_TRANSACTIONS):
    """One result per transaction."""

    throttle_time_ms: int = int32("0+")
    transaction_states: list[TransactionState] = array(TransactionState, "0+")
