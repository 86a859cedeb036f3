"""Asking a cluster how it is: what each broker says, and that one says nothing."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from penstock.client.admin import Admin
from penstock.client.errors import BrokerUnreachableError
from penstock.client.operations.brokers import (
    BrokerDescription,
    ClusterDescription,
    LogDirDescription,
    ReplicaSize,
)
from penstock.client.operations.configs import ConfigEntry, ConfigResource, ConfigSource
from penstock.client.operations.topics import PartitionDescription, TopicDescription, TopicListing
from penstock.client.values import Node, TopicPartition
from penstock.errors import UnsupportedVersion
from penstock.status import gathering
from penstock.status.values import ClusterState, DirectoryState

FIRST, SILENT = (Node(number, "127.0.0.1", 9092 + number, None) for number in range(2))
AT = TopicPartition("t", 0)


class FakeAdmin:
    """Two brokers and a topic; the second broker answers nobody."""

    cluster = None

    def describe_cluster(self) -> ClusterDescription:
        brokers = (BrokerDescription(node=FIRST), BrokerDescription(node=SILENT, is_fenced=True))
        return ClusterDescription(cluster_id="an-id", controller=FIRST, brokers=brokers)

    def list_topics(self) -> list[TopicListing]:
        return [TopicListing(name="t", topic_id=bytes(16), is_internal=False)]

    def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        part = PartitionDescription(
            partition=0,
            leader=FIRST,
            leader_epoch=3,
            replicas=(FIRST, SILENT),
            isr=(FIRST,),
            offline=(SILENT,),
            elr=None,
            last_known_elr=None,
        )
        told = TopicDescription(name="t", topic_id=bytes(16), is_internal=False, partitions=(part,))
        return dict.fromkeys(names, told)

    def describe_configs(
        self, resources: Sequence[ConfigResource], *, synonyms: bool
    ) -> dict[ConfigResource, list[ConfigEntry]]:
        entry = ConfigEntry(
            name="min.insync.replicas",
            value="5",
            source=ConfigSource.DYNAMIC_TOPIC_CONFIG,
            is_sensitive=False,
            is_read_only=False,
        )
        return {resource: [entry] for resource in resources}

    def describe_log_dirs(self, brokers: Sequence[int]) -> dict[int, list[LogDirDescription]]:
        if SILENT.id in brokers:
            raise BrokerUnreachableError("no answer")
        held = ReplicaSize(partition=AT, size_bytes=70, offset_lag=0, is_future=False)
        usual: dict[str, Any] = {"error": None, "replicas": (held,), "usable_bytes": 10}
        return {
            FIRST.id: [
                LogDirDescription(path="/a", total_bytes=100, **usual),
                LogDirDescription(path="/old", total_bytes=None, **usual),
                LogDirDescription(
                    path="/b", total_bytes=100, **{**usual, "error": UnsupportedVersion("broken")}
                ),
            ]
        }

    def list_partition_reassignments(self) -> dict[TopicPartition, Any]:
        raise UnsupportedVersion("not served")


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> ClusterState:
    monkeypatch.setattr(gathering, "replica_ends", lambda _, __, held: dict.fromkeys(held, 12))
    return gathering.gather(cast(Admin, FakeAdmin()))


def test_a_broker_that_does_not_answer_is_part_of_the_answer(state: ClusterState) -> None:
    _, silent = state.brokers
    assert (silent.failures, silent.size_bytes, silent.is_fenced) == (("no answer",), None, True)
    assert (state.cluster_id, state.controller_id, state.topic_count) == ("an-id", 0, 1)


def test_a_broker_tells_its_ends_and_the_disks_that_work_and_know_their_size(
    state: ClusterState,
) -> None:
    first, _ = state.brokers
    assert (first.ends, first.size_bytes) == ({AT: 12}, 210)
    assert first.directories == (DirectoryState(path="/a", total_bytes=100, usable_bytes=10),)
    assert [failure.partition(":")[0] for failure in first.failures] == ["directory /b"]


def test_no_topic_needs_more_in_sync_than_it_has_replicas(state: ClusterState) -> None:
    (partition,) = state.partitions
    assert (partition.isr_min, partition.isr, partition.elr) == (2, (0,), ())


def test_a_broker_that_serves_no_reassignments_has_none(state: ClusterState) -> None:
    assert state.moves == {}
