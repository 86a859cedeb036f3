"""The requests of transactions, in every version, with a whole broker behind them."""

import asyncio
from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.list_transactions import ListTransactionsRequest
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
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
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

    def commit_offset(
        self, offset: int, *, version: int = 3, topic: str = "orders", **fields: Any
    ) -> int:
        request = TxnOffsetCommitRequest(
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
        answer = self.served.ask(request, version)
        return int(answer.topics[0].partitions[0].error_code)

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


@pytest.fixture
def client(served: Any) -> Client:
    served.create("orders", 3)
    client = Client(served)
    assert client.init() == ErrorCode.NONE
    return client


# Identities


@pytest.mark.parametrize("version", range(6))
def test_each_new_owner_gets_the_next_epoch(served: Any, version: int) -> None:
    client = Client(served)
    assert client.init(version) == ErrorCode.NONE
    producer_id, epoch = client.who
    assert epoch == 0
    assert client.init(version) == ErrorCode.NONE
    assert client.who == (producer_id, 1)


@pytest.mark.parametrize("timeout_ms", [0, -5, 900_001])
def test_a_timeout_beyond_transaction_max_timeout_ms_is_refused(
    served: Any, timeout_ms: int
) -> None:
    client = Client(served)
    error = client.init(transaction_timeout_ms=timeout_ms)
    assert error == ErrorCode.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)],
)
def test_a_fenced_producer_cannot_go_on(client: Client, version: int, error: ErrorCode) -> None:
    producer_id, epoch = client.who
    assert client.init() == ErrorCode.NONE
    assert client.init(version, producer_id=producer_id, producer_epoch=epoch) == error


# From the first partition to the end


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


# Batches


@pytest.mark.parametrize(
    ("version", "error"),
    [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_an_older_client_must_add_a_partition_before_it_writes(
    client: Client, version: int, error: ErrorCode
) -> None:
    assert client.produce(0, version=version) == error
    assert client.add() == [ErrorCode.NONE]
    assert client.produce(0, version=version) == ErrorCode.NONE


@pytest.mark.parametrize("version", [12, 13])
def test_a_newer_client_adds_by_writing_and_gets_an_epoch_for_each_transaction(
    client: Client, version: int
) -> None:
    producer_id, epoch = client.who
    for transaction in range(1, 4):
        assert client.produce(0, version=version) == ErrorCode.NONE
        assert client.produce(1, version=version) == ErrorCode.NONE
        assert client.describe().transaction_state == "Ongoing"
        assert client.end(version=5) == ErrorCode.NONE
        assert client.who == (producer_id, epoch + transaction)
    assert client.served.partition("orders").last_stable_offset == 9


def test_the_end_of_a_newer_client_may_be_asked_for_twice(client: Client) -> None:
    before = client.who
    client.produce(0, version=12)
    assert client.end(version=5) == ErrorCode.NONE
    after, client.who = client.who, before
    assert client.end(version=5) == ErrorCode.NONE
    assert client.who == after
    client.who = before
    assert client.end(committed=False, version=5) == ErrorCode.INVALID_TXN_STATE


def test_a_zombie_writes_nothing_after_it_was_fenced(client: Client) -> None:
    client.add()
    assert client.produce(0) == ErrorCode.NONE
    zombie = client.who
    client.init()
    client.who = zombie
    log = client.served.partition("orders").log
    end_offset = log.log_end_offset
    assert client.produce(1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert client.produce(0, version=12) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.log_end_offset == end_offset == log.last_stable_offset


def test_a_batch_of_a_transaction_without_its_id_is_refused(client: Client) -> None:
    error = client.produce(0, transactional_id=None)
    assert error == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_newer_client_that_is_faster_than_the_markers_waits_for_them(client: Client) -> None:
    """The coordinator answers before the markers are written; the next batch may be there first."""
    coordinator = client.served.broker.transactions.coordinator
    markers, coordinator._markers = coordinator._markers, Stuck()
    assert client.produce(0, version=12) == ErrorCode.NONE
    assert client.end(version=5) == ErrorCode.NONE
    assert client.produce(0, version=12) == ErrorCode.CONCURRENT_TRANSACTIONS
    coordinator._markers.inner = markers

    served = client.served

    async def both() -> Any:
        asking = asyncio.ensure_future(served.answer(client.produce_request(0), 12))
        await asyncio.sleep(0.03)
        coordinator._markers.going.set()
        return await asking

    answer = served.run(both())
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert served.partition("orders").log.log_end_offset == 3


class Stuck:
    """Markers that wait until they are let go."""

    def __init__(self) -> None:
        self.inner: Any = None
        self.going = asyncio.Event()

    async def write(self, marker: Any, partitions: Any) -> Any:
        await self.going.wait()
        return await self.inner.write(marker, partitions)


# Offsets


@pytest.mark.parametrize("version", range(6))
def test_offsets_count_when_the_transaction_commits(client: Client, version: int) -> None:
    assert committed_offset(client.served) == (-1, ErrorCode.NONE)
    if version < 5:
        assert client.add_offsets() == ErrorCode.NONE
    assert client.commit_offset(42, version=version) == ErrorCode.NONE
    assert committed_offset(client.served) == (-1, ErrorCode.NONE)
    pending = committed_offset(client.served, require_stable=True)
    assert pending == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert client.end(version=5 if version == 5 else 3) == ErrorCode.NONE
    assert committed_offset(client.served, require_stable=True) == (42, ErrorCode.NONE)


def test_offsets_of_an_aborted_transaction_never_count(client: Client) -> None:
    client.add_offsets()
    committed_offset(client.served)
    client.commit_offset(42)
    assert client.end(committed=False) == ErrorCode.NONE
    assert committed_offset(client.served, require_stable=True) == (-1, ErrorCode.NONE)


@pytest.mark.parametrize(
    ("version", "error"), [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_offsets_outside_of_the_transaction_are_refused(
    client: Client, version: int, error: ErrorCode
) -> None:
    committed_offset(client.served)
    assert client.commit_offset(42, version=version) == error


def test_offsets_of_an_old_generation_and_of_unknown_topics_are_refused(client: Client) -> None:
    committed_offset(client.served)
    client.add_offsets()
    unknown = client.commit_offset(1, topic="nowhere")
    assert unknown == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    old = client.commit_offset(1, generation_id=3, member_id="gone")
    assert old == ErrorCode.ILLEGAL_GENERATION


def test_offsets_wait_for_a_coordinator_of_the_group(client: Client) -> None:
    error = client.commit_offset(1)
    assert error == ErrorCode.COORDINATOR_NOT_AVAILABLE


# Markers from elsewhere


@pytest.mark.parametrize("version", [1, 2])
def test_markers_are_written_where_this_broker_leads(client: Client, version: int) -> None:
    client.add()
    client.produce(0)
    marker = WritableTxnMarker(
        producer_id=client.who[0],
        producer_epoch=client.who[1],
        transaction_result=False,
        topics=[
            WritableTxnMarkerTopic(name="orders", partition_indexes=[0, 7]),
            WritableTxnMarkerTopic(name="nowhere", partition_indexes=[0]),
        ],
        coordinator_epoch=0,
    )
    (result,) = client.served.ask(WriteTxnMarkersRequest(markers=[marker]), version).markers
    found = [p.error_code for topic in result.topics for p in topic.partitions]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (result.producer_id, found) == (client.who[0], [ErrorCode.NONE, unknown, unknown])
    log = client.served.partition("orders").log
    assert log.last_stable_offset == log.log_end_offset == 2
    assert [each.first_offset for each in log.aborted_transactions(0, 2)] == [0]


# Looking


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


def listed(client: Client, version: int = 2, **filters: Any) -> set[str]:
    answer = client.served.ask(ListTransactionsRequest(**filters), version)
    assert answer.error_code == ErrorCode.NONE
    return {state.transactional_id for state in answer.transaction_states}


def test_transactions_are_listed_through_filters(client: Client) -> None:
    other = Client(client.served, "other")
    other.init()
    other.add()
    assert listed(client) == listed(client, 0) == {ID, "other"}
    assert listed(client, state_filters=["Ongoing"]) == {"other"}
    assert listed(client, state_filters=["Ongoing", "Empty"]) == {ID, "other"}
    assert listed(client, state_filters=["Nonsense"]) == set()
    assert listed(client, producer_id_filters=[client.who[0]]) == {ID}
    assert listed(client, duration_filter=3_600_000, state_filters=["Ongoing"]) == set()
    assert listed(client, duration_filter=0, state_filters=["Empty"]) == {ID}
    assert listed(client, transactional_id_pattern="oth.*") == {"other"}
    assert listed(client, transactional_id_pattern="the") == set()
    assert listed(client, transactional_id_pattern="") == {ID, "other"}


def test_patterns_match_ids_of_any_characters(client: Client) -> None:
    for transactional_id in ("app:1/a b", "app:2/ä", "app.3"):
        Client(client.served, transactional_id).init()
    assert listed(client, transactional_id_pattern="app:.*") == {"app:1/a b", "app:2/ä"}
    assert listed(client, transactional_id_pattern=r"app\W\d") == {"app.3"}
    assert listed(client, transactional_id_pattern=r".*\s.*") == {"app:1/a b"}
    assert listed(client, transactional_id_pattern="app:2/[^a-z]") == {"app:2/ä"}


def test_a_state_nobody_knows_is_named(client: Client) -> None:
    request = ListTransactionsRequest(state_filters=["Ongoing", "Nonsense"])
    assert client.served.ask(request, 1).unknown_state_filters == ["Nonsense"]


def test_a_pattern_that_is_none_is_refused(client: Client) -> None:
    request = ListTransactionsRequest(transactional_id_pattern="(")
    error = client.served.ask(request, 2).error_code
    assert error == ErrorCode.INVALID_REGULAR_EXPRESSION


# Versions


def test_clients_are_told_of_transaction_version_2(served: Any) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = served.ask(request, 4)
    supported = {f.name: (f.min_version, f.max_version) for f in answer.supported_features}
    finalized = {f.name: f.max_version_level for f in answer.finalized_features}
    assert supported["transaction.version"] == (0, 2)
    assert finalized["transaction.version"] == 2
    assert answer.finalized_features_epoch >= 0
    older = served.ask(request, 3)
    assert all(feature.min_version > 0 for feature in older.supported_features)
    assert {f.name: f.max_version_level for f in older.finalized_features} == finalized
