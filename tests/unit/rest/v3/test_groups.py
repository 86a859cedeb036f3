"""Groups and their lags as documents."""

import pytest

from penstock.client.values import TopicPartition
from penstock.rest.v3.group_lags import PartitionLag
from penstock.rest.v3.groups import state_word, summary_document
from penstock.rest.v3.links import Links


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("PreparingRebalance", "PREPARING_REBALANCE"),
        ("Stable", "STABLE"),
        ("Empty", "EMPTY"),
        ("", "UNKNOWN"),
    ],
)
def test_states_are_written_as_java_does(state: str, word: str) -> None:
    assert state_word(state) == word


def test_a_summary_tells_the_worst_partition_and_the_sum() -> None:
    lags = [
        PartitionLag(at=TopicPartition("t", 0), current_offset=0, end_offset=3, consumer_id="a"),
        PartitionLag(at=TopicPartition("t", 1), current_offset=0, end_offset=9, consumer_id="b"),
    ]
    said = summary_document(Links(base="http://x", cluster_id="c"), "g", lags)
    assert (said["max_lag"], said["total_lag"]) == (9, 12)
    assert said["max_lag_consumer_id"] == "b"
    assert said["max_lag_partition"]["related"].endswith("/topics/t/partitions/1")
