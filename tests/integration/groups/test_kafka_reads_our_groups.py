"""Our `__consumer_offsets` in Apache Kafka's hands and Kafka's in ours: decoded, and moved."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.apache_kafka import CURRENT, LAST_WITH_ZOOKEEPER, KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.java import run_java
from tests.support.outside import needs
from tests.support.processes import HOST, ServerProcess
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

from penstock.client.wire.connection import BrokerConnection
from penstock.errors import ErrorCode
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

TOPIC = "orders"
OFFSETS = "__consumer_offsets"
ONE_SHARD = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
DUMP_TOOLS = {
    CURRENT: "org.apache.kafka.tools.DumpLogSegments",
    LAST_WITH_ZOOKEEPER: "kafka.tools.DumpLogSegments",
}


def use_groups(server: ServerProcess) -> None:
    """A group with members that commit and leave, one without, one that is deleted again."""
    with RawConnection(server.port) as connection:
        assert connection.create_topic(TOPIC, partitions=2) == 0
    producer = Producer({"bootstrap.servers": server.address})
    for number in range(20):
        producer.produce(TOPIC, str(number), partition=number % 2)
    assert producer.flush(120) == 0
    settings = {
        "bootstrap.servers": server.address,
        "group.id": "readers",
        "client.id": "reader",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    read = 0
    while read < 20:
        read += len(consumer.consume(20, timeout=1))
    consumer.commit(asynchronous=False)
    consumer.close()
    for group in ("loners", "short-lived"):
        loner = Consumer({**settings, "group.id": group})
        loner.commit(offsets=[TopicPartition(TOPIC, 1, 7, metadata="by hand")], asynchronous=False)
        loner.close()
    with BrokerConnection(HOST, server.port) as wire:
        (result,) = wire.request(DeleteGroupsRequest(groups_names=["short-lived"]), 2).results
        assert result.error_code == 0


def commit_with_retention(server: ServerProcess) -> None:
    """As old clients did, which say how long the offset is to be kept."""
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=3, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id="veterans",
        retention_time_ms=3_600_000,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )
    with BrokerConnection(HOST, server.port) as wire:
        told = wire.request(request, 3)
        assert told.topics[0].partitions[0].error_code == 0


def committed(server: ServerProcess) -> Any:
    """All offsets of all groups, and how the groups are; None while they are being loaded."""
    names = ["readers", "loners", "veterans", "short-lived"]
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
    with BrokerConnection(HOST, server.port) as wire:
        wire.request(FindCoordinatorRequest(key_type=0, coordinator_keys=names), 4)
        told = wire.request(OffsetFetchRequest(groups=groups), 8).groups
        described = wire.request(DescribeGroupsRequest(groups=names), 5).groups
    if any(group.error_code for group in [*told, *described]):
        return None
    offsets = {
        (group.group_id, topic.name, partition.partition_index): (
            partition.committed_offset,
            partition.metadata.rstrip("\0"),  # confluent-kafka sends the end of its string along.
        )
        for group in told
        for topic in group.topics
        for partition in topic.partitions
    }
    return offsets, [
        (group.group_id, group.group_state, group.protocol_type) for group in described
    ]


def loaded(server: ServerProcess) -> Any:
    return eventually(lambda: committed(server), timeout_s=120, what="the groups")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A broker that was used by groups and stopped."""
    with BrokerProcess(tmp_path_factory.mktemp("written"), ONE_SHARD) as broker:
        broker.start()
        use_groups(broker)
        commit_with_retention(broker)
        broker.found = loaded(broker)  # type: ignore[attr-defined]
        broker.stop()
        yield broker


def test_groups_are_found_again_after_a_restart(written: Any) -> None:
    written.start()
    assert loaded(written) == written.found
    written.stop()
    offsets, groups = written.found
    assert offsets == {
        ("readers", TOPIC, 0): (10, ""),
        ("readers", TOPIC, 1): (10, ""),
        ("loners", TOPIC, 1): (7, "by hand"),
        ("veterans", TOPIC, 0): (3, ""),
    }
    assert groups == [
        ("readers", "Empty", "consumer"),
        ("loners", "Empty", ""),
        ("veterans", "Empty", ""),
        ("short-lived", "Dead", ""),
    ]


@pytest.mark.parametrize("version", [CURRENT, LAST_WITH_ZOOKEEPER])
def test_kafkas_decoder_reads_what_we_store(written: Any, version: str) -> None:
    segment = next(written.partition_dir(OFFSETS).glob("*.log"))
    printed = run_java(
        f"{needs(version)}/*", DUMP_TOOLS[version], "--offsets-decoder", "--files", str(segment)
    )
    keys = [json.loads(key) for key in re.findall(r"key: (\{.*?\}) payload", printed)]
    payloads = re.findall(r"payload: (.*)", printed)
    assert len(keys) == len(payloads) > 5
    read = list(zip(keys, payloads, strict=True))
    groups = [
        json.loads(p) for key, p in read if key["data"].keys() == {"group"} and p != "<DELETE>"
    ]
    stable, empty = groups[0]["data"], groups[-1]["data"]
    assert {group["version"] for group in groups} == {"3"}
    assert (stable["protocolType"], stable["generation"], stable["protocol"]) == (
        "consumer",
        1,
        "range",
    )
    assert [member["clientId"] for member in stable["members"]] == ["reader"]
    assert stable["leader"] == stable["members"][0]["memberId"]
    assert (empty["generation"], empty["leader"], empty["members"]) == (2, None, [])
    offsets = [
        (key["data"]["group"], json.loads(p)["version"], json.loads(p)["data"]["offset"])
        for key, p in read
        if "topic" in key["data"] and p != "<DELETE>"
    ]
    assert ("loners", "4", 7) in offsets
    assert ("veterans", "1", 3) in offsets
    assert payloads.count("<DELETE>") == 2  # The offset and the group of the deleted one.


def copy_partition(source: Path, target: Path) -> None:
    """Replace the target's files, except the one that holds its topic id."""
    for path in target.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in source.iterdir():
        if path.name != "partition.metadata":
            shutil.copy(path, target / path.name)


@pytest.mark.long
@pytest.mark.parametrize("version", [CURRENT, LAST_WITH_ZOOKEEPER])
def test_groups_move_to_apache_kafka_and_back(written: Any, tmp_path: Path, version: str) -> None:
    with KafkaProcess(needs(version), tmp_path / "kafka", ONE_SHARD) as kafka:
        kafka.start()
        with RawConnection(kafka.port) as connection:
            assert connection.create_topic(TOPIC, partitions=2) == 0
        loaded(kafka)
        kafka.stop()
        copy_partition(written.partition_dir(OFFSETS), kafka.partition_dir(OFFSETS))
        kafka.start()
        assert loaded(kafka) == written.found
        consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "loners"})
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 9)], asynchronous=False)
        consumer.close()
        after = loaded(kafka)
        assert after != written.found
        kafka.stop()
    ours = BrokerProcess(tmp_path / "back", ONE_SHARD)
    shutil.copytree(written.data, ours.data, symlinks=True)
    copy_partition(kafka.partition_dir(OFFSETS), ours.partition_dir(OFFSETS))
    with ours:
        ours.start()
        assert loaded(ours) == after
        with BrokerConnection(HOST, ours.port) as wire:
            (result,) = wire.request(DeleteGroupsRequest(groups_names=["loners"]), 2).results
            assert result.error_code == ErrorCode.NONE
        ours.stop()


@pytest.mark.long
@pytest.mark.parametrize("version", [CURRENT, LAST_WITH_ZOOKEEPER])
def test_what_kafka_stored_of_its_groups_is_read_here(tmp_path: Path, version: str) -> None:
    with KafkaProcess(needs(version), tmp_path / "kafka", ONE_SHARD) as kafka:
        kafka.start()
        loaded(kafka)
        use_groups(kafka)
        expected = loaded(kafka)
        kafka.stop()
    with BrokerProcess(tmp_path / "ours", ONE_SHARD) as ours:
        ours.start()
        with RawConnection(ours.port) as connection:
            assert connection.create_topic(TOPIC, partitions=2) == 0
        loaded(ours)
        ours.stop()
        copy_partition(kafka.partition_dir(OFFSETS), ours.partition_dir(OFFSETS))
        ours.start()
        assert loaded(ours) == expected
        ours.stop()
