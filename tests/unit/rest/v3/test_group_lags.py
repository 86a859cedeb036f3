"""How far groups are behind."""

from penstock.client.operations.groups import MemberDescription
from penstock.client.values import TopicPartition
from penstock.rest.v3.group_lags import KnownOffsets, PartitionLag, group_lags

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
MEMBER = MemberDescription(
    member_id="m", instance_id="i", client_id="c", host="h", assignment=(FIRST,)
)


def test_a_lag_names_who_reads_the_partition_if_anybody_does() -> None:
    known = [KnownOffsets(FIRST, 3, 10), KnownOffsets(SECOND, 4, 4)]
    assert group_lags(known, [MEMBER]) == [
        PartitionLag(
            at=FIRST,
            current_offset=3,
            end_offset=10,
            consumer_id="m",
            instance_id="i",
            client_id="c",
        ),
        PartitionLag(at=SECOND, current_offset=4, end_offset=4),
    ]


def test_nobody_is_ahead_of_the_end() -> None:
    assert PartitionLag(at=FIRST, current_offset=12, end_offset=10).lag == 0
