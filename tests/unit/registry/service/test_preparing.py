"""Which topics are safe for schemas."""

import pytest

from penstock.client.operations.topics import PartitionDescription, TopicDescription
from penstock.errors import ConfigError
from penstock.registry.service.preparing import check_partitions, check_policy


def topic_of(count: int) -> TopicDescription:
    parts = tuple(
        PartitionDescription(
            partition=number,
            leader=None,
            leader_epoch=0,
            replicas=(),
            isr=(),
            offline=(),
            elr=None,
            last_known_elr=None,
        )
        for number in range(count)
    )
    return TopicDescription(name="_schemas", topic_id=b"", is_internal=False, partitions=parts)


def test_a_compacted_topic_of_one_partition_is_taken() -> None:
    check_policy("_schemas", "compact")
    check_partitions(topic_of(1))


@pytest.mark.parametrize("policy", ["delete", "compact,delete", "compact, delete", ""])
def test_a_topic_that_deletes_by_age_is_refused(policy: str) -> None:
    with pytest.raises(ConfigError, match=f"cleanup.policy={policy}, which would delete schemas"):
        check_policy("_schemas", policy)


def test_a_topic_of_several_partitions_is_refused() -> None:
    with pytest.raises(ConfigError, match="has 2 partitions"):
        check_partitions(topic_of(2))
