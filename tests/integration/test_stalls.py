"""One client must not hold up the others, whatever it asks for.

A neighbour writes and reads all the while, and the broker's own watch over its event loop tells
how much processor time one turn of it took. On a busy machine everything takes longer, but no turn
does more work.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.batches import batch, record, stored_batches
from tests.support.broker import BrokerProcess, server_command
from tests.support.fixtures import StartBroker
from tests.support.loop_watch import no_long_turns, watched_settings
from tests.support.neighbour import CANARY, neighbour_at_work
from tests.support.processes import HOST, ServerProcess
from tests.support.waiting import eventually
from tests.support.wire import (
    FETCH,
    METADATA,
    PRODUCE,
    ProduceAnswer,
    RawConnection,
    Reader,
    produce_body,
    read_produce,
    request,
    string,
)

from penstock.protocol.apis import Request, response_class
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from penstock.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from penstock.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from penstock.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from penstock.records.compression import Codec, compress

UNKNOWN_SERVER_ERROR = -1
UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, INVALID_REQUEST, POLICY_VIOLATION = 3, 5, 42, 44
OPERATION_NOT_ATTEMPTED = 55
DELETE_RECORDS = 21
MAX_TIMESTAMP = -3
PATIENCE_S = 120


@pytest.fixture
def watched(start_broker: StartBroker) -> BrokerProcess:
    return start_broker(watched_settings())


@contextmanager
def patient_connection(broker: BrokerProcess) -> Iterator[RawConnection]:
    with RawConnection(broker.port, timeout_s=PATIENCE_S) as connection:
        yield connection


# Topics that come to life because somebody names them


def metadata_body(names: list[str]) -> bytes:
    """Metadata version 1, in which every name may become a topic."""
    return struct.pack(">i", len(names)) + b"".join(map(string, names))


def error_codes(reader: Reader) -> dict[str, int]:
    """The error of each topic in an answer to Metadata version 1."""
    for _ in range(reader.number("i")):  # The brokers.
        reader.take(4), reader.text(), reader.take(4), reader.text()
    reader.take(4)
    found = {}
    for _ in range(reader.number("i")):
        code, name, _ = reader.number("h"), reader.text(), reader.take(1)
        found[name] = code
        for _ in range(reader.number("i")):
            reader.take(10)
            reader.take(4 * reader.number("i")), reader.take(4 * reader.number("i"))
    return found


def partition_directories(broker: BrokerProcess) -> int:
    return sum(1 for found in broker.data.iterdir() if found.is_dir())


def test_hundreds_of_thousands_of_unknown_names_create_nothing_and_stall_nobody(
    watched: BrokerProcess,
) -> None:
    names = [f"n{number:010d}" for number in range(300_000)]
    with neighbour_at_work(watched, timeout_s=PATIENCE_S):
        before, memory = partition_directories(watched), watched.rss_bytes()
        with no_long_turns(watched), patient_connection(watched) as connection:
            codes = error_codes(connection.ask(METADATA, 1, metadata_body(names)))
        assert codes == dict.fromkeys(names, UNKNOWN_TOPIC)
        assert partition_directories(watched) == before
        assert watched.rss_peak_bytes() < memory + 300_000_000
    assert watched.stop() == 0, watched.log_end


def test_thousands_of_topics_come_to_life_in_slices(watched: BrokerProcess) -> None:
    names = [f"topic-{number}" for number in range(2_000)]
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        no_long_turns(watched),
        patient_connection(watched) as connection,
    ):
        codes = error_codes(connection.ask(METADATA, 1, metadata_body(names)))
        assert set(codes.values()) <= {0, LEADER_NOT_AVAILABLE}
        connection.produce_one(names[-1], batch([b"there"]))
    assert watched.stop() == 0, watched.log_end


def test_a_large_topic_comes_and_goes_in_slices(watched: BrokerProcess) -> None:
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        no_long_turns(watched),
        patient_connection(watched) as connection,
    ):
        assert connection.create_topic("large", partitions=3_000) == 0
        connection.produce_one("large", batch([b"there"]), partition=2_999)
        assert connection.delete_topic("large") == 0
        eventually(lambda: not any(watched.data.glob("large-*[0-9]")), what="all logs renamed")
        assert connection.create_topic("large", partitions=1) == 0
        assert connection.produce_one("large", batch([b"anew"])) == 0


def test_a_broker_that_creates_thousands_of_topics_stops_when_told(
    watched: BrokerProcess,
) -> None:
    names = [f"topic-{number}" for number in range(9_000)]
    with patient_connection(watched) as connection:
        connection.send(request(METADATA, 1, metadata_body(names)))
        eventually(lambda: partition_directories(watched) > 100, timeout_s=120)
        assert watched.stop(timeout_s=120) == 0, watched.log_end
    assert 100 < partition_directories(watched) < 9_000
    watched.start()
    with patient_connection(watched) as connection:
        known = error_codes(connection.ask(METADATA, 1, struct.pack(">i", -1)))
    assert set(known.values()) == {0}
    assert len(known) == partition_directories(watched)


# File descriptors


class FewDescriptors(BrokerProcess):
    """A broker that may have only so many files open."""

    limit = 400

    def launch(self) -> None:
        settings = {"listeners": f"PLAINTEXT://{HOST}:{self.port}", **self.settings}
        limited = f'ulimit -n {self.limit} && exec "$@"'
        self.command = ["sh", "-c", limited, "sh", *server_command(settings)]
        ServerProcess.launch(self)


def test_topics_leave_descriptors_for_connections_and_say_so(tmp_path: Path) -> None:
    with FewDescriptors(tmp_path) as broker:
        broker.start()
        with patient_connection(broker) as connection:
            names = [f"topic-{number}" for number in range(1_000)]
            codes = error_codes(connection.ask(METADATA, 1, metadata_body(names)))
            assert codes == dict.fromkeys(names, POLICY_VIOLATION)
            assert connection.create_topic("huge", partitions=400) == POLICY_VIOLATION
            refused = 0
            for number in range(20):
                refused |= connection.create_topic(f"some-{number}", partitions=40)
            assert refused == POLICY_VIOLATION
            others = [RawConnection(broker.port, timeout_s=PATIENCE_S) for _ in range(30)]
            for number, other in enumerate(others):
                assert other.produce_one("some-0", batch([b"x"]), partition=0) == number
                other.close()
        assert broker.tracebacks() == {}
        assert broker.stop() == 0, broker.log_end


# Records that must be unpacked


def bomb(codec: Codec, size_bytes: int = 90_000_000) -> bytes:
    """A batch of one record that says little at great length."""
    packed = compress(codec, record(0, bytes(size_bytes), key=b"k"))
    return batch([b""], attributes=int(codec), records=packed)


CODECS = (Codec.GZIP, Codec.LZ4, Codec.ZSTD)
UNPACKING = {
    "another codec": {"compression.type": "snappy"},
    "keys": {"cleanup.policy": "compact"},
    "timestamps": {"message.timestamp.before.max.ms": "86400000"},
}


@pytest.mark.parametrize("reason", UNPACKING)
def test_batches_that_unpack_to_much_stall_nobody(watched: BrokerProcess, reason: str) -> None:
    bombs = [bomb(codec) for codec in CODECS]
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        ExitStack() as connected,
        patient_connection(watched) as connection,
    ):
        assert connection.create_topic("packed", configs=UNPACKING[reason]) == 0
        with no_long_turns(watched):
            connections = [connected.enter_context(patient_connection(watched)) for _ in range(6)]
            for number, other in enumerate(connections):
                body = produce_body({("packed", 0): bombs[number % len(bombs)]})
                other.send(request(PRODUCE, 7, body))
            for other in connections:
                other.read_frame()
    assert watched.tracebacks() == {}


def test_batches_stay_in_their_order_while_one_of_them_is_unpacked(
    watched: BrokerProcess,
) -> None:
    with patient_connection(watched) as connection:
        assert connection.create_topic("keyed", configs={"cleanup.policy": "compact"}) == 0
        large = compress(Codec.ZSTD, record(0, bytes(900_000), key=b"large"))
        small = record(0, b"small", key=b"small")
        identity = connection.init_producer_id()
        for sequence in range(20):
            is_large = sequence % 4 == 0
            sent = batch(
                [b""],
                attributes=int(Codec.ZSTD) if is_large else 0,
                records=large if is_large else small,
                producer=identity,
                sequence=sequence,
            )
            body = produce_body({("keyed", 0): sent})
            connection.send(request(PRODUCE, 7, body, correlation_id=sequence))
        for sequence in range(20):
            reader = Reader(connection.read_frame())
            assert reader.number("i") == sequence
            assert read_produce(reader, 7)["keyed", 0] == ProduceAnswer(
                error_code=0, base_offset=sequence
            )
        stored = stored_batches(connection.fetch("keyed", 0).records)
        assert [found.records == small for found in stored] == [n % 4 != 0 for n in range(20)]


def test_a_batch_without_acks_is_not_overtaken_while_it_is_unpacked(
    watched: BrokerProcess,
) -> None:
    with patient_connection(watched) as connection:
        assert connection.create_topic("keyed", configs={"cleanup.policy": "compact"}) == 0
        packed = compress(Codec.ZSTD, record(0, bytes(900_000), key=b"k"))
        large = batch([b""], attributes=int(Codec.ZSTD), records=packed)
        small = batch([b""], records=record(0, b"small", key=b"k"))
        connection.send(request(PRODUCE, 7, produce_body({("keyed", 0): large}, acks=0)))
        assert connection.produce_one("keyed", small) == 1
        wrong = batch([b""], attributes=int(Codec.ZSTD), records=b"\0" * 100_000)
        connection.send(request(PRODUCE, 7, produce_body({("keyed", 0): wrong}, acks=0)))
        assert connection.is_closed_by_peer()


def test_old_consumers_have_records_unpacked_for_them_without_a_stall(
    watched: BrokerProcess,
) -> None:
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        patient_connection(watched) as connection,
    ):
        assert connection.create_topic("packed") == 0
        connection.produce_one("packed", bomb(Codec.GZIP))
        with no_long_turns(watched):
            answer = connection.ask(FETCH, 2, old_fetch_body("packed"))
        assert len(answer.data) > 60


def old_fetch_body(topic: str) -> bytes:
    """Fetch version 2, whose records are messages of format 1."""
    wanted = struct.pack(">iiqi", 1, 0, 0, 1_000_000)
    return struct.pack(">iiii", -1, 100, 1, 1) + string(topic) + wanted


# Requests about everything


def ask(connection: RawConnection, message: Request, version: int) -> Reader:
    flexible = type(message).is_flexible(version)
    key = int(type(message).api_key)
    return connection.ask(key, version, message.encode(version), flexible=flexible)


def answered(connection: RawConnection, message: Request, version: int) -> Any:
    """The answer as a message."""
    answer = ask(connection, message, version)
    if type(message).is_flexible(version):
        answer.take(1)  # The tagged fields of the header, of which there are none.
    return response_class(type(message).api_key).decode(answer.data, version, answer.at)


def asked_for_much(topics: list[str]) -> dict[str, tuple[Request, int]]:
    many = [f"group-{number}" for number in range(100_000)]
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=-1)] * 50
    return {
        "all topics": (MetadataRequest(topics=None), 9),
        "settings": (
            DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(resource_type=2, resource_name=name) for name in topics
                ]
            ),
            4,
        ),
        "offsets": (
            ListOffsetsRequest(
                replica_id=-1,
                topics=[ListOffsetsTopic(name=name, partitions=partitions) for name in topics],
            ),
            5,
        ),
        "coordinators": (FindCoordinatorRequest(key_type=0, coordinator_keys=many), 4),
        "groups": (DescribeGroupsRequest(groups=many), 5),
        "groups to delete": (DeleteGroupsRequest(groups_names=many), 2),
    }


def test_the_settings_of_thousands_of_new_topics_are_told_without_a_stall(
    watched: BrokerProcess,
) -> None:
    made = CreateTopicsRequest(
        topics=[
            CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=1)
            for number in range(4_000)
        ],
        timeout_ms=60_000,
        validate_only=True,  # Which is answered all the same.
    )
    with patient_connection(watched) as connection, no_long_turns(watched):
        answer = ask(connection, made, 5)
        answer.take(1)
        told = CreateTopicsResponse.decode(answer.data, 5, answer.at).topics
    assert {(topic.error_code, len(topic.configs or ()) > 20) for topic in told} == {(0, True)}


def test_a_request_of_millions_of_names_is_refused_before_it_takes_memory(
    watched: BrokerProcess,
) -> None:
    with neighbour_at_work(watched, timeout_s=PATIENCE_S), no_long_turns(watched):
        memory = watched.rss_bytes()
        with patient_connection(watched) as connection:
            body = struct.pack(">i", 40_000_000) + bytes(80_000_000)
            connection.send(request(METADATA, 1, body))
            assert connection.is_closed_by_peer()
        assert watched.rss_peak_bytes() < memory + 500_000_000
    assert "its lists have more than 500,000 elements" in watched.log_end


def test_a_client_that_asks_about_everything_stalls_nobody(watched: BrokerProcess) -> None:
    topics = [f"topic-{number}" for number in range(1_000)]
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        patient_connection(watched) as connection,
    ):
        with no_long_turns(watched):
            made = CreateTopicsRequest(
                topics=[CreatableTopic(name=name, num_partitions=1) for name in topics],
                timeout_ms=60_000,
            )
            for topic in made.topics:
                topic.replication_factor = 1
            ask(connection, made, 5)
        for what, (message, version) in asked_for_much(topics).items():
            with no_long_turns(watched, what=what):
                assert ask(connection, message, version).data
    assert watched.tracebacks() == {}


def by_time(topic: str, timestamp: int) -> ListOffsetsRequest:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
    )


def offsets(connection: RawConnection, asked: ListOffsetsRequest) -> ListOffsetsResponse:
    answer = ask(connection, asked, 7)
    answer.take(1)  # The tagged fields of the header, of which there are none.
    return ListOffsetsResponse.decode(answer.data, 7, answer.at)


@pytest.mark.parametrize("timestamp", [1, MAX_TIMESTAMP])
def test_a_search_by_time_unpacks_without_a_stall(watched: BrokerProcess, timestamp: int) -> None:
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        patient_connection(watched) as connection,
    ):
        assert connection.create_topic("packed") == 0
        for codec in CODECS:
            connection.produce_one("packed", bomb(codec))
        with no_long_turns(watched):
            for _ in range(3):
                (topic,) = offsets(connection, by_time("packed", timestamp)).topics
                (partition,) = topic.partitions
                assert (partition.error_code, partition.offset) == (0, 0)


def test_partitions_asked_for_twice_are_refused_however_far_apart(watched: BrokerProcess) -> None:
    """Requests of many partitions are answered over several turns of the loop."""
    names = [f"absent-{number}" for number in range(3_000)]
    latest = ListOffsetsPartition(partition_index=0, timestamp=-1)
    with patient_connection(watched) as connection:
        assert connection.create_topic("twice") == 0
        asked = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(name=name, partitions=[latest])
                for name in ("twice", *names, "twice")
            ],
        )
        answer = offsets(connection, asked)
        codes = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert codes == {**dict.fromkeys(names, UNKNOWN_TOPIC), "twice": INVALID_REQUEST}


# Many partitions of one topic


def test_questions_about_very_many_partitions_of_one_topic_stall_nobody(
    watched: BrokerProcess,
) -> None:
    many = [*range(100_000), 0]
    epochs = [OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in many]
    expected = [(index, 0 if index == 0 else UNKNOWN_TOPIC) for index in many]
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        patient_connection(watched) as connection,
    ):
        assert connection.create_topic("one") == 0
        connection.produce_one("one", batch([b"there"]))
        with no_long_turns(watched, what="producers"):
            asked = DescribeProducersRequest(
                topics=[TopicRequest(name="one", partition_indexes=many)]
            )
            producers: DescribeProducersResponse = answered(connection, asked, 0)
        (topic,) = producers.topics
        assert [(each.partition_index, each.error_code) for each in topic.partitions] == expected
        with no_long_turns(watched, what="epochs"):
            wanted = OffsetForLeaderEpochRequest(
                replica_id=-1, topics=[OffsetForLeaderTopic(topic="one", partitions=epochs)]
            )
            ends: OffsetForLeaderEpochResponse = answered(connection, wanted, 4)
        (result,) = ends.topics
        assert [(each.partition, each.error_code) for each in result.partitions] == expected
        assert result.partitions[-1].end_offset == 1
    assert watched.tracebacks() == {}


def test_records_of_very_many_partitions_are_deleted_without_a_stall_and_in_their_turn(
    watched: BrokerProcess,
) -> None:
    def deletion(indexes: list[int], offset: int) -> DeleteRecordsRequest:
        wanted = [DeleteRecordsPartition(partition_index=it, offset=offset) for it in indexes]
        topic = DeleteRecordsTopic(name="wide", partitions=wanted)
        return DeleteRecordsRequest(topics=[topic], timeout_ms=60_000)

    known = list(range(1_000))
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        patient_connection(watched) as connection,
    ):
        assert connection.create_topic("wide", partitions=len(known)) == 0
        filled = {("wide", index): batch([b"a", b"b", b"c"]) for index in known}
        connection.ask(PRODUCE, 7, produce_body(filled))
        with no_long_turns(watched):
            # What comes after waits for what came before, also if that takes several turns.
            connection.send(request(DELETE_RECORDS, 1, deletion(known, 2).encode(1)))
            connection.send(request(DELETE_RECORDS, 1, deletion([999], -1).encode(1)))
            first, second = (
                DeleteRecordsResponse.decode(connection.read_frame(), 1, 4) for _ in range(2)
            )
            many: DeleteRecordsResponse = answered(connection, deletion([0] * 100_000, 1), 1)
        found = [(it.error_code, it.low_watermark) for it in first.topics[0].partitions]
        assert found == [(0, 2)] * len(known)
        assert second.topics[0].partitions[0].low_watermark == 3
        assert {it.low_watermark for it in many.topics[0].partitions} == {2}
        assert len(many.topics[0].partitions) == 100_000
    assert watched.tracebacks() == {}


# Topics that go


def test_thousands_of_topics_are_deleted_without_a_stall(watched: BrokerProcess) -> None:
    topics = [f"topic-{number}" for number in range(500)]
    names = [*topics, *(f"absent-{number}" for number in range(100_000)), "absent-0"]
    made = CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in topics
        ],
        timeout_ms=60_000,
    )
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        patient_connection(watched) as connection,
    ):
        ask(connection, made, 5)
        with no_long_turns(watched):
            asked = DeleteTopicsRequest(topic_names=names, timeout_ms=60_000)
            answer: DeleteTopicsResponse = answered(connection, asked, 5)
        codes = {str(result.name): result.error_code for result in answer.responses}
        expected = {**dict.fromkeys(names, UNKNOWN_TOPIC), **dict.fromkeys(topics, 0)}
        assert codes == {**expected, "absent-0": INVALID_REQUEST}
        known = error_codes(connection.ask(METADATA, 1, struct.pack(">i", -1)))
        assert set(known) == {CANARY}
    assert watched.tracebacks() == {}


# Transactions


def test_a_transaction_of_thousands_of_partitions_stalls_nobody(watched: BrokerProcess) -> None:
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        patient_connection(watched) as connection,
    ):
        assert connection.create_topic("wide", partitions=4_000) == 0
        owner = transactional_producer(connection, "wide-writer")

        def added(indexes: Sequence[int]) -> list[int]:
            topic = AddPartitionsToTxnTopic(name="wide", partitions=list(indexes))
            asked = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="wide-writer",
                v3_and_below_producer_id=owner.producer_id,
                v3_and_below_producer_epoch=owner.producer_epoch,
                v3_and_below_topics=[topic],
            )
            answer: AddPartitionsToTxnResponse = answered(connection, asked, 3)
            (found,) = answer.results_by_topic_v3_and_below
            assert [each.partition_index for each in found.results_by_partition] == list(indexes)
            return [each.partition_error_code for each in found.results_by_partition]

        with no_long_turns(watched, what="unknown"):
            codes = added(range(100_000))
            assert codes == [OPERATION_NOT_ATTEMPTED] * 4_000 + [UNKNOWN_TOPIC] * 96_000
        with no_long_turns(watched, what="known"):
            assert added(range(4_000)) == [0] * 4_000
        with no_long_turns(watched, what="again and again"):
            assert added([7] * 100_000) == [0] * 100_000
        with no_long_turns(watched, what="verified"):
            topic = AddPartitionsToTxnTopic(name="wide", partitions=list(range(100_000)))
            asked = AddPartitionsToTxnRequest(
                transactions=[
                    AddPartitionsToTxnTransaction(
                        transactional_id="wide-writer",
                        producer_id=owner.producer_id,
                        producer_epoch=owner.producer_epoch,
                        verify_only=True,
                        topics=[topic],
                    )
                ]
            )
            verified: AddPartitionsToTxnResponse = answered(connection, asked, 5)
            (result,) = verified.results_by_transaction[0].topic_results
            codes = [each.partition_error_code for each in result.results_by_partition]
            assert codes[:4_000] == [0] * 4_000
            assert 0 not in codes[4_000:]
        with no_long_turns(watched, what="ended"):
            ending = EndTxnRequest(
                transactional_id="wide-writer",
                producer_id=owner.producer_id,
                producer_epoch=owner.producer_epoch,
                committed=True,
            )
            ended: EndTxnResponse = answered(connection, ending, 3)
            assert ended.error_code == 0
            eventually(lambda: connection.offset("wide", partition=3_999) == 1, what="a marker")
    assert watched.tracebacks() == {}


def transactional_producer(
    connection: RawConnection, transactional_id: str
) -> InitProducerIdResponse:
    ask(connection, FindCoordinatorRequest(key=transactional_id, key_type=1), 1)  # Makes its topic.
    asked = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    found: list[InitProducerIdResponse] = []

    def is_there() -> bool:
        found.append(answered(connection, asked, 2))
        return found[-1].error_code == 0

    eventually(is_there, what="a coordinator", timeout_s=60)
    return found[-1]


# Fetches of many partitions


def fetch_many(partitions: list[int], *, max_wait_ms: int = 0, **session: int) -> FetchRequest:
    wanted = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1_000_000)
        for index in partitions
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=50_000_000,
        topics=[FetchTopic(topic="wide", partitions=wanted)] if wanted else [],
        **session,
    )


def fetched(connection: RawConnection, asked: FetchRequest, version: int) -> FetchResponse:
    answer = ask(connection, asked, version)
    answer.take(1 if FetchRequest.is_flexible(version) else 0)
    return FetchResponse.decode(answer.data, version, answer.at)


def test_a_fetch_that_names_thousands_of_partitions_stalls_nobody(watched: BrokerProcess) -> None:
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        patient_connection(watched) as connection,
        patient_connection(watched) as producer,
    ):
        assert connection.create_topic("wide", partitions=1_000) == 0
        many = list(range(1_000)) * 30
        with no_long_turns(watched, what="nothing there"):
            (topic,) = fetched(connection, fetch_many(many, max_wait_ms=100), 4).responses
            assert [found.partition_index for found in topic.partitions] == many
            assert {found.error_code for found in topic.partitions} == {0}
        with no_long_turns(watched, what="waiting"):
            waiting = fetch_many(many, max_wait_ms=60_000).encode(4)
            connection.send(request(FETCH, 4, waiting))
            for _ in range(20):  # Some of them come while the partitions are read.
                producer.produce_one("wide", batch([b"news"]), partition=7)
            answer = FetchResponse.decode(connection.read_frame(), 4, 4)
        told = answer.responses[0].partitions
        assert {found.partition_index for found in told if found.records} == {7}
    assert watched.tracebacks() == {}


def test_a_session_of_thousands_of_partitions_stalls_nobody(watched: BrokerProcess) -> None:
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        patient_connection(watched) as connection,
    ):
        assert connection.create_topic("wide", partitions=1) == 0
        connection.produce_one("wide", batch([b"there"]))
        many = list(range(30_000))
        with no_long_turns(watched, what="the first"):
            begun = fetched(connection, fetch_many(many, session_epoch=0), 12)
        assert len(begun.responses[0].partitions) == len(many)
        asked = fetch_many([], session_id=begun.session_id, session_epoch=1)
        with no_long_turns(watched, what="the next"):
            again = fetched(connection, asked, 12)
        assert [found.partition_index for found in again.responses[0].partitions[:3]] == [1, 2, 3]
        assert again.responses[0].partitions[-1].partition_index == 0  # It had its turn.
    assert watched.tracebacks() == {}


# Writes to many partitions


def test_a_request_that_writes_to_thousands_of_partitions_stalls_nobody_and_keeps_its_place(
    watched: BrokerProcess,
) -> None:
    many = range(3_000)
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        patient_connection(watched) as connection,
    ):
        assert connection.create_topic("wide", partitions=len(many)) == 0
        first = {("wide", index): batch([b"first", b"of two"]) for index in many}
        first["wide", len(many)] = batch([b"nowhere"])
        second = {("wide", len(many) - 1): batch([b"second"])}
        with no_long_turns(watched):
            connection.send(request(PRODUCE, 7, produce_body(first), correlation_id=1))
            connection.send(request(PRODUCE, 7, produce_body(first, acks=0)))
            connection.send(request(PRODUCE, 7, produce_body(second), correlation_id=2))
            reader = Reader(connection.read_frame())
            assert reader.number("i") == 1
            told = read_produce(reader, 7)
        assert told.pop(("wide", len(many))).error_code == UNKNOWN_TOPIC
        assert set(told.values()) == {ProduceAnswer(error_code=0, base_offset=0)}
        assert connection.is_closed_by_peer()  # Which is how errors are told without acks.
    with patient_connection(watched) as connection:
        assert connection.produce_one("wide", batch([b"x"]), partition=0) == 4
        stored = stored_batches(connection.fetch("wide", 0, partition=2_999).records)
        assert [found.base_offset for found in stored] == [0, 2]
    assert watched.tracebacks() == {}


# Groups


def test_an_assignment_larger_than_any_is_refused_without_a_stall(watched: BrokerProcess) -> None:
    joining = JoinGroupRequest(
        group_id="eager",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="any",
        protocols=[JoinGroupRequestProtocol(name="a protocol", metadata=b"")],
    )

    def joined(connection: RawConnection) -> bool:
        answer: JoinGroupResponse = answered(connection, joining, 3)
        joining.member_id, generations[:] = answer.member_id, [answer.generation_id]
        return answer.error_code == 0

    def synced(connection: RawConnection, assignments: dict[str, bytes]) -> SyncGroupResponse:
        eventually(lambda: joined(connection), what="a member", timeout_s=60)
        asked = SyncGroupRequest(
            group_id="eager",
            generation_id=generations[0],
            member_id=joining.member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id or joining.member_id, assignment=it)
                for member_id, it in assignments.items()
            ],
        )
        answer: SyncGroupResponse = answered(connection, asked, 3)
        return answer

    generations: list[int] = []
    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        patient_connection(watched) as connection,
    ):
        ask(connection, FindCoordinatorRequest(key="eager", key_type=0), 1)  # Makes their topic.
        with no_long_turns(watched, what="many"):
            others = {f"member-{number}": b"theirs" for number in range(100_000)}
            assert synced(connection, {**others, "": b"ours"}).assignment == b"ours"
        with no_long_turns(watched, what="large"):
            answer = synced(connection, {"": bytes(40_000_000)})
            assert answer.error_code == UNKNOWN_SERVER_ERROR
        assert synced(connection, {"": b"ours again"}).assignment == b"ours again"
    assert watched.tracebacks() == {}


def test_a_member_that_names_more_protocols_than_any_has_is_refused_without_a_stall(
    watched: BrokerProcess,
) -> None:
    def joining(count: int) -> JoinGroupRequest:
        protocols = [
            JoinGroupRequestProtocol(name=f"protocol-{number}", metadata=b"what it wants")
            for number in range(count)
        ]
        return JoinGroupRequest(
            group_id="eager", session_timeout_ms=30_000, protocol_type="any", protocols=protocols
        )

    def error_code(connection: RawConnection, asked: JoinGroupRequest) -> int:
        answer = ask(connection, asked, 3)
        return JoinGroupResponse.decode(answer.data, 3, answer.at).error_code

    with (
        neighbour_at_work(watched, timeout_s=PATIENCE_S),
        patient_connection(watched) as connection,
    ):
        ask(connection, FindCoordinatorRequest(key="eager", key_type=0), 1)  # Makes their topic.
        eventually(lambda: error_code(connection, joining(1_000)) == 0, what="a member")
        with no_long_turns(watched):
            assert error_code(connection, joining(100_000)) == INVALID_REQUEST
