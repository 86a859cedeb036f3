"""DeleteRecords: the start of a log moves forward, and never beyond what is committed."""

from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)


def delete(
    served: Any, offset: int, *, topic: str = "t", index: int = 0, version: int = 2
) -> tuple[int, int]:
    """The error code and the low watermark."""
    wanted = DeleteRecordsPartition(partition_index=index, offset=offset)
    asked = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])])
    (answered,) = served.ask(asked, version).topics
    (partition,) = answered.partitions
    assert (answered.name, partition.partition_index) == (topic, index)
    return partition.error_code, partition.low_watermark


@pytest.fixture
def filled(served: Any) -> Any:
    served.create("t")
    served.append("t", 1, 2, 3, 4)
    return served


@pytest.mark.parametrize("version", range(3))
def test_records_before_an_offset_are_forgotten(filled: Any, version: int) -> None:
    assert delete(filled, 3, version=version) == (ErrorCode.NONE, 3)
    assert filled.partition("t").log.log_start_offset == 3


def test_minus_one_forgets_all_that_is_committed(filled: Any) -> None:
    assert delete(filled, -1) == (ErrorCode.NONE, 4)


def test_the_start_never_goes_back(filled: Any) -> None:
    delete(filled, 3)
    assert delete(filled, 1) == (ErrorCode.NONE, 3)


@pytest.mark.parametrize("offset", [5, 2**62, -2])
def test_an_offset_outside_what_is_committed_is_refused(filled: Any, offset: int) -> None:
    assert delete(filled, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert filled.partition("t").log.log_start_offset == 0


def test_a_partition_that_is_not_there_is_told(filled: Any) -> None:
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(filled, 1, index=8) == unknown
    assert delete(filled, 1, topic="absent") == unknown


def test_a_topic_that_is_only_compacted_keeps_its_records(filled: Any) -> None:
    filled.create("kept", cleanup_policy="compact")
    filled.create("both", cleanup_policy="compact,delete")
    assert delete(filled, 0, topic="kept") == (ErrorCode.POLICY_VIOLATION, -1)
    assert delete(filled, 0, topic="both") == (ErrorCode.NONE, 0)


def test_records_of_internal_topics_are_not_for_clients_to_delete(served: Any) -> None:
    served.create("__consumer_offsets")
    assert delete(served, -1, topic="__consumer_offsets") == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        -1,
    )
