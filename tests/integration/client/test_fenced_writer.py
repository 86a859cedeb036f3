"""Fenced writers and members of a foreign group protocol, on our broker and on Apache Kafka."""

import threading
import time
from collections.abc import Iterator

import pytest
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.outside import needs
from tests.support.processes import ServerProcess
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.consumer.consumer import Consumer
from penstock.client.operations.membership import GroupMembership, GroupProtocol
from penstock.client.operations.topics import NewTopic
from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.fenced_writer import FencedWriter, WriterFenced
from penstock.errors import RebalanceInProgress, RecordTooLarge, UnknownMemberId
from penstock.records.record import Record

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}


@pytest.fixture(scope="module", params=["penstock", pytest.param("kafka", marks=pytest.mark.kafka)])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("server")
    made: ServerProcess
    if request.param == "penstock":
        made = BrokerProcess(directory, SETTINGS)
    else:
        made = KafkaProcess(needs(CURRENT), directory, SETTINGS)
    with made:
        made.start()
        yield made


@pytest.fixture
def cluster(server: ServerProcess) -> Iterator[ClusterClient]:
    with ClusterClient(server.address) as made:
        yield made


def record(text: str) -> Record:
    return Record(0, time.time_ns() // 1_000_000, text.encode(), b"value")


def stored(server: ServerProcess, at: TopicPartition) -> list[str]:
    """All keys, as a reader sees them that knows nothing of transactions."""
    found: list[str] = []
    with Consumer({"bootstrap.servers": server.address, "auto.offset.reset": "earliest"}) as reader:
        reader.assign([at])
        end = reader.end_offsets([at])[at]
        while reader.position(at) < end:
            found += [str(one.key, "utf-8") for one in reader.poll(1.0)]
    return found


def test_whoever_begins_later_shuts_out_whoever_came_before(
    server: ServerProcess, cluster: ClusterClient
) -> None:
    at = TopicPartition("fenced", 0)
    with Admin(bootstrap_servers=server.address) as admin:
        admin.create_topics([NewTopic(name="fenced", partitions=1)])
    old, new = (FencedWriter(cluster, at, "writer") for _ in range(2))
    with pytest.raises(WriterFenced):
        old.append([record("not begun")])
    first = old.begin()
    assert old.append([record("a"), record("b")]) == 0
    assert old.append([record("c")]) == 2
    second = new.begin()
    assert (second.producer_id, second.producer_epoch) == (
        first.producer_id,
        first.producer_epoch + 1,
    )
    assert old.append([record("d")]) == 3  # The log knows nothing of the new one yet.
    assert new.append([record("e")]) == 4
    with pytest.raises(WriterFenced):
        old.append([record("too late")])
    assert old.append_unfenced(record("f")) == 5
    old.begin()
    assert old.append([record("g")]) == 6
    with pytest.raises(WriterFenced):
        new.append([record("too late as well")])
    assert stored(server, at) == ["a", "b", "c", "d", "e", "f", "g"]


def test_a_writer_of_an_id_that_the_coordinator_gave_up_is_retired(
    server: ServerProcess, cluster: ClusterClient
) -> None:
    at = TopicPartition("retired", 0)
    with Admin(bootstrap_servers=server.address) as admin:
        admin.create_topics([NewTopic(name="retired", partitions=1)])
    old, new = FencedWriter(cluster, at, "forgotten"), FencedWriter(cluster, at, "given anew")
    producer_id = old.begin().producer_id
    old.append([record("a")])
    assert new.begin().producer_id != producer_id
    new.append([record("b")])
    old.append([record("c")])
    for _ in range(2):  # Another one may do the same at the same time.
        new.retire(producer_id, record("x"))
    with pytest.raises(WriterFenced):
        old.append([record("too late")])
    new.append([record("d")])
    assert stored(server, at)[:3] == ["a", "b", "c"]


def test_a_record_that_is_refused_leaves_the_writer_as_it_was(
    server: ServerProcess, cluster: ClusterClient
) -> None:
    at = TopicPartition("small", 0)
    with Admin(bootstrap_servers=server.address) as admin:
        admin.create_topics(
            [NewTopic(name="small", partitions=1, configs={"max.message.bytes": "1000"})]
        )
    writer = FencedWriter(cluster, at, "small")
    writer.begin()
    writer.append([record("a")])
    with pytest.raises(RecordTooLarge):
        writer.append([record("b" * 2000)])
    writer.append([record("c")])
    assert stored(server, at) == ["a", "c"]


def is_called_back(member: GroupMembership) -> bool:
    try:
        member.beat()
    except RebalanceInProgress:
        return True
    return False


def test_members_of_any_protocol_share_a_group(server: ServerProcess) -> None:
    protocol = GroupProtocol(
        group_id="registries", protocol_type="sr", protocol="v0", session_timeout_ms=10_000
    )
    with ClusterClient(server.address) as mine, ClusterClient(server.address) as others:
        first, second = GroupMembership(mine, protocol), GroupMembership(others, protocol)
        alone = first.join(b"first")
        assert alone.members == {alone.member_id: b"first"}
        assert first.sync({alone.member_id: b"you"}) == b"you"
        first.beat()
        seen: list[bytes] = []

        def come_second() -> None:
            joined = second.join(b"second")
            assert joined.members is None
            seen.append(second.sync({}))

        coming = threading.Thread(target=come_second)
        coming.start()
        eventually(lambda: is_called_back(first), what="a rebalance")
        both = first.join(b"first")
        assert both.members is not None
        assert sorted(both.members.values()) == [b"first", b"second"]
        assert first.sync(dict.fromkeys(both.members, b"she leads")) == b"she leads"
        coming.join(60)
        assert seen == [b"she leads"]
        second.leave()
        eventually(lambda: is_called_back(first), what="a rebalance")
        first.leave()
        with pytest.raises(UnknownMemberId):
            first.beat()
