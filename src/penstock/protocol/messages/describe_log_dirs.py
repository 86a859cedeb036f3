"""DescribeLogDirs: what lies in the directories of a broker."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, int16, int32, int64, string


class DescribableLogDirTopic(Struct):
    """A topic and the partitions asked about."""

    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class DescribeLogDirsRequest(Request, api=ApiKey.DESCRIBE_LOG_DIRS):
    """Partitions to tell of; null asks for all."""

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, "0+", nullable=True)


class DescribeLogDirsPartition(Struct):
    """A replica and its size; a future one is on its way to this directory."""

    partition_index: int = int32("0+")
    partition_size: int = int64("0+")
    offset_lag: int = int64("0+")
    is_future_key: bool = boolean("0+")


class DescribeLogDirsTopic(Struct):
    """A topic and its replicas."""

    name: str = string("0+")
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition, "0+")


class DescribeLogDirsResult(Struct):
    """A directory, what is in it and how much room is left."""

    error_code: int = int16("0+")
    log_dir: str = string("0+")
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic, "0+")
    total_bytes: int = int64("4+", default=-1, ignorable=True)
    usable_bytes: int = int64("4+", default=-1, ignorable=True)
    is_cordoned: bool = boolean("5+", ignorable=True)


class DescribeLogDirsResponse(Response, api=ApiKey.DESCRIBE_LOG_DIRS):
    """One result per directory."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult, "0+")
