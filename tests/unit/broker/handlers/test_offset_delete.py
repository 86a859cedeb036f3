"""OffsetDelete, and offsets that go with their topic."""

from typing import Any

from tests.unit.broker.handlers.committed_offsets import commit, fetch

from penstock.errors import ErrorCode
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)


def delete(served: Any, *partitions: tuple[str, int], group_id: str = "g") -> Any:
    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
        )
        for name, index in partitions
    ]
    return served.ask(OffsetDeleteRequest(group_id=group_id, topics=topics), 0)


def test_offsets_are_deleted_partition_by_partition(grouped: Any) -> None:
    commit(grouped, 8, {("t", 0): 5, ("u", 0): 6})
    told = delete(grouped, ("t", 0), ("t", 1), ("t", 2), ("nope", 0))
    assert told.error_code == 0
    codes = [(t.name, ErrorCode(p.error_code)) for t in told.topics for p in t.partitions]
    assert codes == [
        ("t", ErrorCode.NONE),
        ("t", ErrorCode.NONE),
        ("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert fetch(grouped, 9, None) == {("u", 0): (6, ErrorCode.NONE)}


def test_offsets_of_no_group_cannot_be_deleted(grouped: Any) -> None:
    assert delete(grouped, ("t", 0), group_id="").error_code == ErrorCode.INVALID_GROUP_ID
    assert delete(grouped, ("t", 0)).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_deleting_a_topic_deletes_its_offsets(grouped: Any) -> None:
    commit(grouped, 8, {("t", 0): 5, ("u", 0): 6})
    grouped.ask(DeleteTopicsRequest(topic_names=["t"]), 4)
    grouped.create("t", 2)
    assert fetch(grouped, 9, None) == {("u", 0): (6, ErrorCode.NONE)}
