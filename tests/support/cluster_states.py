"""Clusters as `penstock.status` describes them, whole unless a test says what is wrong."""

from typing import Any

from penstock.client.values import Node, TopicPartition
from penstock.status.values import BrokerState, ClusterState, DirectoryState, PartitionStatus

T = [TopicPartition("t", number) for number in range(9)]


def partition(number: int = 0, **more: Any) -> PartitionStatus:
    usual: dict[str, Any] = {
        "at": T[number],
        "leader": 0,
        "leader_epoch": 0,
        "replicas": (0, 1, 2),
        "isr": (0, 1, 2),
        "elr": (),
        "isr_min": 2,
    }
    return PartitionStatus(**{**usual, **more})


def broker(number: int, **more: Any) -> BrokerState:
    usual: dict[str, Any] = {
        "node": Node(number, "127.0.0.1", 9092 + number, f"rack-{number}"),
        "is_fenced": False,
        "ends": {},
        "size_bytes": 0,
    }
    return BrokerState(**{**usual, **more})


def cluster(*partitions: PartitionStatus, **more: Any) -> ClusterState:
    usual: dict[str, Any] = {
        "cluster_id": "an-id",
        "controller_id": 1,
        "brokers": (broker(0), broker(1), broker(2)),
        "topic_count": 1,
        "partitions": partitions or (partition(),),
    }
    return ClusterState(**{**usual, **more})


def directory(usable_bytes: int, total_bytes: int = 100 << 30) -> DirectoryState:
    return DirectoryState(path="/data/a", total_bytes=total_bytes, usable_bytes=usable_bytes)
