"""What brokers are asked about a topic that has just changed."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

from penstock.client.admin import Admin
from penstock.errors import ErrorCode
from penstock.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.rest.v3.replicas import changed_topic


def topic(partitions: int) -> MetadataResponseTopic:
    """A topic as a broker tells it; without partitions the broker has not heard of it."""
    code = ErrorCode.NONE if partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    found = [MetadataResponsePartition(partition_index=index) for index in range(partitions)]
    return MetadataResponseTopic(name="t", error_code=code, partitions=found)


def admin_of(answers: Sequence[MetadataResponseTopic]) -> Admin:
    """Brokers that answer one after the other, each knowing a little more."""
    left = iter(answers)

    def metadata(names: Sequence[str]) -> MetadataResponse:
        return MetadataResponse(topics=[next(left)])

    return cast(Admin, SimpleNamespace(cluster=SimpleNamespace(metadata=metadata)))


def test_a_new_topic_is_told_once_the_broker_that_is_asked_has_heard_of_it() -> None:
    found = changed_topic(admin_of([topic(0), topic(0), topic(2)]), "t")
    assert len(found.partitions) == 2


def test_an_enlarged_topic_is_told_with_its_new_partitions() -> None:
    found = changed_topic(admin_of([topic(1), topic(1), topic(3)]), "t", partitions=3)
    assert len(found.partitions) == 3
