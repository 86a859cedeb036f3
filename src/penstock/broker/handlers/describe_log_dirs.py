"""DescribeLogDirs: what lies in each log directory, and how full its volume is."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.broker.context import RequestContext
from penstock.errors import ErrorCode
from penstock.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from penstock.replica.partition import Partition
from penstock.storage.directories.disk_room import DiskRoom

if TYPE_CHECKING:
    from penstock.replica.moving import ReplicaMove

_EVERY_DIRECTORY = "*"


def handle(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    broker = context.broker
    wanted = _wanted(request)
    hosted: dict[Path, list[Partition]] = {path: [] for path in broker.log_dirs.paths}
    for partition in broker.partitions.hosted():
        if wanted is None or (partition.topic, partition.partition) in wanted:
            hosted.setdefault(partition.log.dir.parent, []).append(partition)
    cordoned = broker.config.cordoned_log_dirs
    working = {found.path: found.room for found in broker.log_dirs.dirs if found.failure is None}
    response = DescribeLogDirsResponse(
        results=[
            _result(working[path], found, cordoned) if path in working else _offline(path)
            for path, found in hosted.items()
        ]
    )
    for move in broker.partitions.moves_under_way():
        if wanted is None or move.partition.key in wanted:
            _add_copy(response, move)
    return response


def _add_copy(response: DescribeLogDirsResponse, move: "ReplicaMove") -> None:
    """A replica that is being moved is in two directories."""
    for result in response.results:
        if result.log_dir == str(move.target):
            copy = DescribeLogDirsPartition(
                partition_index=move.partition.partition,
                partition_size=move.copy.size_bytes,
                offset_lag=move.lag,
                is_future_key=True,
            )
            topic = next((t for t in result.topics if t.name == move.partition.topic), None)
            if topic is None:
                topic = DescribeLogDirsTopic(name=move.partition.topic)
                result.topics.append(topic)
            topic.partitions.append(copy)


def _wanted(request: DescribeLogDirsRequest) -> set[tuple[str, int]] | None:
    """The partitions asked for; None: all of them."""
    if request.topics is None:
        return None
    return {(topic.topic, index) for topic in request.topics for index in topic.partitions}


def _result(
    room: DiskRoom, partitions: Sequence[Partition], cordoned: Collection[str]
) -> DescribeLogDirsResult:
    path = room.path
    try:
        total_bytes, usable_bytes = room.total_bytes(), room.usable_bytes()
    except OSError:
        return _offline(path)
    return DescribeLogDirsResult(
        log_dir=str(path),
        topics=_topics(partitions),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=_EVERY_DIRECTORY in cordoned or str(path) in cordoned,
    )


def _offline(path: Path) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), log_dir=str(path))


def _topics(partitions: Sequence[Partition]) -> list[DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in partitions:
        topic = topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = DescribeLogDirsTopic(name=partition.topic)
        topic.partitions.append(_partition(partition))
    return list(topics.values())


def _partition(partition: Partition) -> DescribeLogDirsPartition:
    log = partition.log
    return DescribeLogDirsPartition(
        partition_index=partition.partition,
        partition_size=log.size_bytes,
        offset_lag=partition.lag,
    )
