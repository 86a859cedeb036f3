"""DescribeLogDirs: what lies in each log directory, and how full its volume is."""

import os
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

if TYPE_CHECKING:
    from penstock.replica.moving import Move

_EVERY_DIRECTORY = "*"


def handle(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    broker = context.broker
    wanted = _wanted(request)
    hosted: dict[Path, list[Partition]] = {path: [] for path in broker.log_dirs.paths}
    for partition in broker.partitions.hosted():
        if wanted is None or (partition.topic, partition.partition) in wanted:
            hosted.setdefault(partition.log.dir.parent, []).append(partition)
    cordoned = broker.config.cordoned_log_dirs
    failed = {directory.path for directory in broker.log_dirs.failed}
    response = DescribeLogDirsResponse(
        results=[
            _offline(path) if path in failed else _result(path, found, cordoned)
            for path, found in hosted.items()
        ]
    )
    for move in broker.partitions.moves_under_way():
        if wanted is None or move.partition.key in wanted:
            _add_copy(response, move)
    return response


def _add_copy(response: DescribeLogDirsResponse, move: "Move") -> None:
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
    path: Path, partitions: Sequence[Partition], cordoned: Collection[str]
) -> DescribeLogDirsResult:
    try:
        volume = os.statvfs(path)
    except OSError:
        return _offline(path)
    return DescribeLogDirsResult(
        log_dir=str(path),
        topics=_topics(partitions),
        total_bytes=volume.f_blocks * volume.f_frsize,
        usable_bytes=volume.f_bavail * volume.f_frsize,
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
