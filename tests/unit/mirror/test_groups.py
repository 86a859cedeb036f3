"""Offsets of a group on the other side."""

from penstock.client.values import OffsetAndMetadata
from penstock.mirror.groups import Maps, checkpoints, translated, translated_back
from penstock.mirror.runs import Run, RunMap
from penstock.mirror.syncs import Checkpoint
from penstock.records.topic_partition import TopicPartition

HERE, THERE = TopicPartition("t", 0), TopicPartition("A.t", 0)
MAP = RunMap([Run(10, 0), Run(20, 9)], end=15)
MAPS = Maps({HERE: (THERE, MAP)}, {THERE: (HERE, MAP)})


def test_offsets_of_copied_partitions_are_translated_and_others_left_out() -> None:
    offsets = {
        HERE: OffsetAndMetadata(21, "m", 4),
        TopicPartition("other", 0): OffsetAndMetadata(5),
    }
    # The epoch of a leader of the source says nothing on the target.
    assert translated(offsets, MAPS) == {THERE: OffsetAndMetadata(10, "m")}
    assert checkpoints("g", offsets, MAPS) == [Checkpoint("g", "A.t", 0, 21, 10, "m")]


def test_a_group_ahead_of_the_mirror_stands_behind_what_was_copied() -> None:
    assert translated({HERE: OffsetAndMetadata(99)}, MAPS) == {THERE: OffsetAndMetadata(15)}


def test_a_group_returns_to_the_same_record() -> None:
    assert translated_back({THERE: OffsetAndMetadata(10)}, MAPS) == {HERE: OffsetAndMetadata(21)}
    assert translated_back({HERE: OffsetAndMetadata(10)}, MAPS) == {}
