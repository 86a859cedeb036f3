"""Offsets committed and fetched in any version, for the tests of several handlers."""

from typing import Any

from penstock.errors import ErrorCode
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

NOWHERE = b"?" * 16


def topic_id(served: Any, name: str) -> bytes:
    return bytes(served.broker.image.topics[name].topic_id)


def commit(
    served: Any, version: int, offsets: dict[tuple[str, int], int], **fields: Any
) -> dict[tuple[str, int], ErrorCode]:
    """Commits, and the error of each partition."""
    names = {topic_id(served, name): name for name in ("t", "u")}
    topics = [
        OffsetCommitRequestTopic(
            name="" if version >= 10 else name,
            topic_id=topic_id(served, name) if version >= 10 and name in "tu" else NOWHERE,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata="note"
                )
            ],
        )
        for (name, partition), offset in offsets.items()
    ]
    asked = OffsetCommitRequest(**{"group_id": "g", "topics": topics, **fields})
    told = served.ask(asked, version)
    return {
        (names.get(t.topic_id, "?") if version >= 10 else t.name, p.partition_index): ErrorCode(
            p.error_code
        )
        for t in told.topics
        for p in t.partitions
    }


def fetch(
    served: Any, version: int, topics: list[tuple[str, int]] | None, *, stable: bool = False
) -> dict[tuple[str, int], tuple[int, ErrorCode]]:
    """The offset and error of each partition; None asks for all."""
    if version < 8:
        listed = (
            None
            if topics is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=[index])
                for name, index in topics
            ]
        )
        asked = OffsetFetchRequest(group_id="g", topics=listed, require_stable=stable)
        told = served.ask(asked, version)
        assert told.error_code == 0
        found = told.topics
    else:
        wanted = (
            None
            if topics is None
            else [
                OffsetFetchRequestTopics(
                    name=name,
                    topic_id=topic_id(served, name) if name in "tu" else NOWHERE,
                    partition_indexes=[index],
                )
                for name, index in topics
            ]
        )
        group = OffsetFetchRequestGroup(group_id="g", topics=wanted)
        (told,) = served.ask(
            OffsetFetchRequest(groups=[group], require_stable=stable), version
        ).groups
        assert (told.group_id, told.error_code) == ("g", 0)
        found = told.topics
    names = {topic_id(served, name): name for name in ("t", "u")}
    return {
        (names.get(t.topic_id, "?") if version >= 10 else t.name, p.partition_index): (
            p.committed_offset,
            ErrorCode(p.error_code),
        )
        for t in found
        for p in t.partitions
    }
