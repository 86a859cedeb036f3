"""ReplicaEnds, between brokers: how far a replica reaches, asked before an unclean election."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string, uuid


class AskedTopic(Struct):
    """A topic, by name and id, and the partitions asked about."""

    name: str = string("0+")
    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ReplicaEndsRequest(Request, api=ApiKey.REPLICA_ENDS):
    """Which logs to tell of."""

    topics: list[AskedTopic] = array(AskedTopic, "0+")


class ReplicaEndOfPartition(Struct):
    """The last leader epoch in the log, where it ends and where it starts."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    latest_epoch: int = int32("0+", default=-1)
    log_end_offset: int = int64("0+", default=-1)
    log_start_offset: int = int64("0+", default=-1)


class ReplicaEndsOfTopic(Struct):
    """A topic and the ends of its logs."""

    name: str = string("0+")
    partitions: list[ReplicaEndOfPartition] = array(ReplicaEndOfPartition, "0+")


class ReplicaEndsResponse(Response, api=ApiKey.REPLICA_ENDS):
    """One end per partition asked about, or the reason why there is none."""

    error_code: int = int16("0+")
    topics: list[ReplicaEndsOfTopic] = array(ReplicaEndsOfTopic, "0+")
