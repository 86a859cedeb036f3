"""A producer with a transactional id, for the tests of several handlers."""

import asyncio
from typing import Any

from penstock.errors import ErrorCode
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.records.batch import Record, build_batch

ID, GROUP = "txn", "readers"

TRANSACTIONS, GROUPS = 1, 0


class Client:
    """A producer with a transactional id, one request at a time."""

    def __init__(self, served: Any, transactional_id: str = ID) -> None:
        self.served = served
        self.transactional_id = transactional_id
        self.who = (-1, -1)
        find = FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTIONS)
        assert served.ask(find, 1).error_code == ErrorCode.NONE

    def init(self, version: int = 4, **fields: Any) -> int:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            **{"transaction_timeout_ms": 60_000, **fields},
        )
        answer = self.served.ask(request, version)
        if not answer.error_code:
            self.who = (answer.producer_id, answer.producer_epoch)
        return int(answer.error_code)

    def add(self, topic: str = "orders", *partitions: int, version: int = 3) -> list[int]:
        topics = [AddPartitionsToTxnTopic(name=topic, partitions=list(partitions or [0]))]
        return self.add_topics(topics, version=version)

    def add_topics(self, topics: list[AddPartitionsToTxnTopic], version: int = 3) -> list[int]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.who[0],
            v3_and_below_producer_epoch=self.who[1],
            v3_and_below_topics=topics,
        )
        return codes(self.served.ask(request, version).results_by_topic_v3_and_below)

    def batched(self, *partitions: int, version: int = 5, verify_only: bool = False) -> list[int]:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.who[0],
            producer_epoch=self.who[1],
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name="orders", partitions=list(partitions))],
        )
        answer = self.served.ask(AddPartitionsToTxnRequest(transactions=[transaction]), version)
        (result,) = answer.results_by_transaction
        assert result.transactional_id == self.transactional_id
        return codes(result.topic_results)

    def produce(self, sequence: int, *, version: int = 9, **fields: Any) -> int:
        answer = self.served.ask(self.produce_request(sequence, **fields), version)
        return int(answer.responses[0].partition_responses[0].error_code)

    def produce_request(self, sequence: int, **fields: Any) -> ProduceRequest:
        batch = build_batch(
            [Record(0, self.served.broker.now_ms(), None, b"value")],
            producer_id=self.who[0],
            producer_epoch=self.who[1],
            base_sequence=sequence,
            is_transactional=True,
        )
        return ProduceRequest(
            **{
                "transactional_id": self.transactional_id,
                "acks": -1,
                "timeout_ms": 1_000,
                **fields,
            },
            topic_data=[
                TopicProduceData(
                    name="orders",
                    topic_id=self.served.broker.image.topics["orders"].topic_id,
                    partition_data=[PartitionProduceData(index=0, records=memoryview(batch))],
                )
            ],
        )

    def end(self, *, committed: bool = True, version: int = 3) -> int:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.who[0],
            producer_epoch=self.who[1],
            committed=committed,
        )
        answer = self.served.ask(request, version)
        if version >= 5 and not answer.error_code:
            self.who = (answer.producer_id, answer.producer_epoch)
        self.served.run(turns())
        return int(answer.error_code)

    def add_offsets(self, version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.who[0],
            producer_epoch=self.who[1],
            group_id=GROUP,
        )
        return int(self.served.ask(request, version).error_code)

    def commit_offset(self, offset: int, *, version: int = 3, **fields: Any) -> int:
        answer = self.served.ask(self.offset_request(offset, **fields), version)
        return int(answer.topics[0].partitions[0].error_code)

    def offset_request(
        self, offset: int, *, topic: str = "orders", **fields: Any
    ) -> TxnOffsetCommitRequest:
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=GROUP,
            producer_id=self.who[0],
            producer_epoch=self.who[1],
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
                    ],
                )
            ],
            **fields,
        )

    def describe(self) -> Any:
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        (state,) = self.served.ask(request, 0).transaction_states
        return state


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def codes(topics: Any) -> list[int]:
    return [r.partition_error_code for topic in topics for r in topic.results_by_partition]


def committed_offset(served: Any, *, require_stable: bool = False) -> tuple[int, int]:
    served.ask(FindCoordinatorRequest(key=GROUP, key_type=GROUPS), 1)
    request = OffsetFetchRequest(
        group_id=GROUP,
        topics=[OffsetFetchRequestTopic(name="orders", partition_indexes=[0])],
        require_stable=require_stable,
    )
    (topic,) = served.ask(request, 7).topics
    (partition,) = topic.partitions
    return partition.committed_offset, partition.error_code
