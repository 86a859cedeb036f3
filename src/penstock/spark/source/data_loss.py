"""Records that a query should have read and no longer can: stop, or say so and go on.

One place for `failOnDataLoss`. The sentences name topic, partition and offsets; who notices the
loss is for the callers.
"""

import logging

from penstock.client.values import TopicPartition
from penstock.errors import PenstockError

_LOG = logging.getLogger("penstock.spark")
_ADVICE = (
    "Records may have been lost: aged out by retention, or the topic was deleted before all of it "
    "was read. Set the option 'failOnDataLoss' to 'false' to go on with what is there."
)


class DataLossError(PenstockError):
    """Records are gone that the query had not read yet."""


def report(fail: bool, sentence: str) -> None:
    """DataLossError, or a warning where the user chose to go on."""
    if fail:
        raise DataLossError(f"{sentence}. {_ADVICE}")
    _LOG.warning("%s. The query goes on, as failOnDataLoss=false asks.", sentence)


def partitions_gone(partitions: dict[TopicPartition, int]) -> str:
    """Partitions that were read until now and do not exist any more."""
    each = ", ".join(f"{_name(p)} (read up to offset {at})" for p, at in sorted(partitions.items()))
    return f"Partitions are gone: {each}"


def went_back(partition: TopicPartition, start: int, end: int) -> str:
    """A log that is now shorter than what was read of it."""
    return (
        f"{_name(partition)} ends at offset {end}, before offset {start} up to which it was read: "
        "the topic was deleted and created anew, or its log was cut"
    )


def recreated(topic: str) -> str:
    """A topic with the same name and another id."""
    return f"Topic {topic!r} was deleted and created anew since the query last read it"


def position_gone(
    option: str, partition: TopicPartition, wanted: int, there: tuple[int, int]
) -> str:
    """An offset given by the user that the partition does not have."""
    return (
        f"Option {option!r} asks for offset {wanted} of {_name(partition, 'topic')}, "
        f"which has offsets {there[0]} to {there[1]}"
    )


def begins_late(partition: TopicPartition, earliest: int) -> str:
    """A partition seen for the first time whose beginning is gone already."""
    return f"The new {_name(partition, 'topic')} begins at offset {earliest} instead of 0"


def out_of_range(partition: TopicPartition, wanted: tuple[int, int], there: tuple[int, int]) -> str:
    """Offsets to read that the partition does not have."""
    return (
        f"{_name(partition)} has only offsets {there[0]} to {there[1]} (exclusive), "
        f"but {wanted[0]} to {wanted[1]} (exclusive) should be read"
    )


def _name(partition: TopicPartition, topic: str = "Topic") -> str:
    return f"{topic} {partition.topic!r}, partition {partition.partition}"
