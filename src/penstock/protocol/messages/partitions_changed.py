"""PartitionsChanged, between brokers: a leader has written in-sync sets; the controller reads.

Also told: replicas whose logs are lost, because their disk failed.
"""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string


class ChangedTopic(Struct):
    """A topic and those of its partitions whose states were written."""

    name: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class PartitionsChangedRequest(Request, api=ApiKey.PARTITIONS_CHANGED):
    """Which states to read again; what is in them is the store's to say."""

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+")
    topics: list[ChangedTopic] = array(ChangedTopic, "0+")
    offline: list[ChangedTopic] = array(ChangedTopic, "0+", tag=0)  # Their logs cannot be had.


class PartitionsChangedResponse(Response, api=ApiKey.PARTITIONS_CHANGED):
    """An error means the notice was not taken; the controller's sweep finds the states later."""

    error_code: int = int16("0+")
