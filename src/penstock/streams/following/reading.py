"""The committed records of one partition of a changelog, between two offsets."""

from collections.abc import Iterator, Mapping

from penstock.client.values import TopicPartition
from penstock.streams.tasks.changelogs import ChangelogRow


def committed_rows(
    client: Mapping[str, str], at: TopicPartition, begin: int, end: int
) -> Iterator[ChangelogRow]:
    """In the order they lie there; what compaction or retention removed is passed over."""
    from penstock.spark.options import read_options
    from penstock.spark.source.offsets import OffsetRange
    from penstock.spark.source.range_reader import read_range

    options = read_options(
        {
            **{f"kafka.{name}": value for name, value in client.items()},
            "subscribe": at.topic,
            "kafka.isolation.level": "read_committed",
            "failOnDataLoss": "false",
            "columns": "key,value,timestamp",
        },
        streaming=False,
    )
    for batch in read_range(options, OffsetRange(partition=at, start=begin, end=end)):
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        times = batch.column("timestamp").cast("int64").to_pylist()
        for key, value, micros in zip(keys, values, times, strict=True):
            yield ChangelogRow(key, value, micros // 1000)
