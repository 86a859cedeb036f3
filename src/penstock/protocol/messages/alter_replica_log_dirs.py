"""AlterReplicaLogDirs: move replicas between the directories of a broker."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, string


class AlterReplicaLogDirTopic(Struct):
    """A topic and the partitions to move."""

    name: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class AlterReplicaLogDir(Struct):
    """A directory and what shall live in it."""

    path: str = string("0+")
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic, "0+")


class AlterReplicaLogDirsRequest(Request, api=ApiKey.ALTER_REPLICA_LOG_DIRS):
    """Moves to make."""

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir, "0+")


class AlterReplicaLogDirPartitionResult(Struct):
    """Whether the move of one partition began."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class AlterReplicaLogDirTopicResult(Struct):
    """A topic and the results of its partitions."""

    topic_name: str = string("0+")
    partitions: list[AlterReplicaLogDirPartitionResult] = array(
        AlterReplicaLogDirPartitionResult, "0+"
    )


class AlterReplicaLogDirsResponse(Response, api=ApiKey.ALTER_REPLICA_LOG_DIRS):
    """One result per partition."""

    throttle_time_ms: int = int32("0+")
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult, "0+")
