"""WriteTxnMarkers: a transaction's end, written into each partition it touched."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, int8, int16, int32, int64, string


class WritableTxnMarkerTopic(Struct):
    """A topic and the partitions to mark."""

    name: str = string("0+")
    partition_indexes: list[int] = array(int32, "0+")


class WritableTxnMarker(Struct):
    """How one producer's transaction ended, and where to say so."""

    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    transaction_result: bool = boolean("0+")
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic, "0+")
    coordinator_epoch: int = int32("0+")
    transaction_version: int = int8("2+", ignorable=True)


class WriteTxnMarkersRequest(Request, api=ApiKey.WRITE_TXN_MARKERS):
    """Markers from a transaction coordinator to a partition leader."""

    markers: list[WritableTxnMarker] = array(WritableTxnMarker, "0+")


class WritableTxnMarkerPartitionResult(Struct):
    """Whether one partition was marked."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class WritableTxnMarkerTopicResult(Struct):
    """A topic and the results of its partitions."""

    name: str = string("0+")
    partitions: list[WritableTxnMarkerPartitionResult] = array(
        WritableTxnMarkerPartitionResult, "0+"
    )


class WritableTxnMarkerResult(Struct):
    """The results for one producer."""

    producer_id: int = int64("0+")
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult, "0+")


class WriteTxnMarkersResponse(Response, api=ApiKey.WRITE_TXN_MARKERS):
    """One result per producer."""

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult, "0+")
