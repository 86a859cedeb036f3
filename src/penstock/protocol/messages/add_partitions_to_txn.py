"""AddPartitionsToTxn: partitions that a transaction is about to write."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, int16, int32, int64, string


class AddPartitionsToTxnTopic(Struct):
    """A topic and its partitions."""

    name: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class AddPartitionsToTxnTransaction(Struct):
    """One of the transactions of a broker's batched request."""

    transactional_id: str = string("4+")
    producer_id: int = int64("4+")
    producer_epoch: int = int16("4+")
    verify_only: bool = boolean("4+")
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "4+")


class AddPartitionsToTxnRequest(Request, api=ApiKey.ADD_PARTITIONS_TO_TXN):
    """One transaction from a client until version 3, several from a broker after."""

    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, "4+")
    v3_and_below_transactional_id: str = string("0-3")
    v3_and_below_producer_id: int = int64("0-3")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "0-3")


class AddPartitionsToTxnPartitionResult(Struct):
    """Whether one partition was added."""

    partition_index: int = int32("0+")
    partition_error_code: int = int16("0+")


class AddPartitionsToTxnTopicResult(Struct):
    """A topic and the results of its partitions."""

    name: str = string("0+")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(
        AddPartitionsToTxnPartitionResult, "0+"
    )


class AddPartitionsToTxnResult(Struct):
    """The results of one transaction."""

    transactional_id: str = string("4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, "4+")


class AddPartitionsToTxnResponse(Response, api=ApiKey.ADD_PARTITIONS_TO_TXN):
    """One result per partition; grouped by transaction from version 4 on."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, "0-3"
    )
