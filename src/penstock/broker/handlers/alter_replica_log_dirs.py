"""AlterReplicaLogDirs: move replicas of this broker to other log directories of it.

The answer says that a move began; DescribeLogDirs shows how far it is.
"""

from pathlib import Path

from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import fail
from penstock.errors import (
    KafkaStorage,
    LogDirNotFound,
    ProtocolError,
    ReplicaNotAvailable,
)
from penstock.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(
    request: AlterReplicaLogDirsRequest, context: RequestContext
) -> AlterReplicaLogDirsResponse:
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            answer = topics.get(topic.name)
            if answer is None:
                answer = topics[topic.name] = AlterReplicaLogDirTopicResult(topic_name=topic.name)
            answer.partitions += [
                _answer(topic.name, index, Path(directory.path), context.broker)
                for index in topic.partitions
            ]
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def error_response(
    request: AlterReplicaLogDirsRequest, error: ProtocolError
) -> AlterReplicaLogDirsResponse:
    """The same error for every partition."""
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    fail(AlterReplicaLogDirPartitionResult(partition_index=index), error)
                    for index in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _answer(
    topic: str, index: int, target: Path, broker: Broker
) -> AlterReplicaLogDirPartitionResult:
    answer = AlterReplicaLogDirPartitionResult(partition_index=index)
    try:
        _move(topic, index, target, broker)
    except ProtocolError as error:
        fail(answer, error)
    return answer


def _move(topic: str, index: int, target: Path, broker: Broker) -> None:
    if target not in broker.log_dirs.paths:
        raise LogDirNotFound(f"{target} is none of this broker's log.dirs")
    partition = broker.partitions.get(topic, index)
    if partition is None:
        raise ReplicaNotAvailable(f"{topic}-{index} is not on this broker")
    moves = broker.partitions.moves(
        bytes_per_s=lambda: broker.config.replica_alter_log_dirs_io_max_bytes_per_second,
        at_once_max=lambda: broker.config.num_replica_alter_log_dirs_threads,
    )
    try:
        moves.begin(partition, target)
    except OSError as error:
        raise KafkaStorage(f"{target} cannot be written: {error}") from error
