"""DescribeProducers: what a partition remembers of those who write to it."""

from typing import Any

from penstock.errors import ErrorCode
from penstock.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest


def ask(served: Any, topic: str = "t", *indexes: int) -> list[Any]:
    wanted = TopicRequest(name=topic, partition_indexes=list(indexes or (0,)))
    (answered,) = served.ask(DescribeProducersRequest(topics=[wanted]), 0).topics
    partitions: list[Any] = answered.partitions
    return partitions


def test_a_partition_without_idempotent_producers_has_nothing_to_tell(served: Any) -> None:
    served.create("t")
    served.append("t", 1, 2)
    (partition,) = ask(served)
    assert (partition.error_code, partition.active_producers) == (ErrorCode.NONE, [])


def test_an_idempotent_producer_is_told_with_its_last_batch(served: Any) -> None:
    served.create("t")
    served.append("t", 50, 60, producer_id=4, producer_epoch=2, base_sequence=0)
    ((producer,),) = [partition.active_producers for partition in ask(served)]
    assert (producer.producer_id, producer.producer_epoch) == (4, 2)
    assert (producer.last_sequence, producer.last_timestamp) == (1, 60)
    assert producer.current_txn_start_offset == -1


def test_an_open_transaction_is_told_with_its_start(served: Any) -> None:
    served.create("t")
    served.append("t", 1)
    served.append("t", 2, producer_id=4, producer_epoch=0, base_sequence=0, is_transactional=True)
    ((producer,),) = [partition.active_producers for partition in ask(served)]
    assert producer.current_txn_start_offset == 1


def test_what_is_not_there_says_why(served: Any) -> None:
    served.create("t")
    here, there = ask(served, "t", 0, 5)
    assert (here.error_code, here.error_message) == (ErrorCode.NONE, None)
    assert there.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert there.error_message
    assert ask(served, "no/topic")[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
