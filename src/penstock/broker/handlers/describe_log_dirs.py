"""DescribeLogDirs: what lies in each log directory, and how full its volume is."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

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

_EVERY_DIRECTORY = "*"


def handle(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    broker = context.broker
    wanted = _wanted(request)
    hosted: dict[Path, list[Partition]] = {path: [] for path in broker.log_dirs.paths}
    for partition in broker.partitions.hosted():
        if wanted is None or (partition.topic, partition.partition) in wanted:
            hosted.setdefault(partition.log.dir.parent, []).append(partition)
    cordoned = broker.config.cordoned_log_dirs
    return DescribeLogDirsResponse(
        results=[_result(path, found, cordoned) for path, found in hosted.items()]
    )


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
        return DescribeLogDirsResult(
            error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), log_dir=str(path)
        )
    return DescribeLogDirsResult(
        log_dir=str(path),
        topics=_topics(partitions),
        total_bytes=volume.f_blocks * volume.f_frsize,
        usable_bytes=volume.f_bavail * volume.f_frsize,
        is_cordoned=_EVERY_DIRECTORY in cordoned or str(path) in cordoned,
    )


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
