"""`spark.read`: the records between two bounds, planned on the driver, read by the tasks."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from penstock.client.wire.raw_cluster import cluster_for
from penstock.client.wire.raw_fetch import NO_TOPIC_ID
from penstock.spark.options import OptionError, ReadOptions
from penstock.spark.source.offsets import OffsetRange, split
from penstock.spark.source.partitions import TopicsNow, missing_topics
from penstock.spark.source.range_reader import read_range

if TYPE_CHECKING:
    from penstock.spark.executor_logins import ExecutorLogins

_LOG = logging.getLogger("penstock.spark")


class RangePartition(InputPartition):
    """What one task reads."""

    def __init__(
        self,
        wanted: OffsetRange,
        topic_id: bytes = NO_TOPIC_ID,
        login: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(None)
        self.wanted = wanted
        self.topic_id = topic_id
        self.login = login or {}  # How the task logs in; empty: as the options say.


def warn_of_settings(options: ReadOptions) -> None:
    """Say once, on the driver, which settings of a consumer do nothing here."""
    if options.without_effect:
        names = ", ".join(f"kafka.{name}" for name in options.without_effect)
        _LOG.warning("Without effect on a penstock read: %s", names)


def options_of_executors(options: ReadOptions) -> ReadOptions:
    """What leaves the driver; with delegation tokens neither a name nor a password."""
    if not options.delegation_token:
        return options
    from penstock.spark.executor_logins import without_secrets

    return replace(options, client_settings=without_secrets(options.client_settings))


def logins_of(options: ReadOptions) -> "ExecutorLogins":
    from penstock.spark.executor_logins import ExecutorLogins  # Few jobs ask for it.

    return ExecutorLogins(options.client_settings)


class PenstockReader(DataSourceReader):
    """A batch read; also pickled to the workers, so it holds nothing but options."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def __getstate__(self) -> dict[str, object]:
        return {"options": options_of_executors(self.options)}

    def partitions(self) -> list[InputPartition]:
        """The ranges between the bounds as they are now, cut as the options ask."""
        options = self.options
        warn_of_settings(options)
        if options.max_offsets_per_trigger or options.min_offsets_per_trigger:
            _LOG.warning("Limits per trigger are for streams; a batch reads all it is asked for")
        with cluster_for(options.client_settings) as cluster:
            now = TopicsNow(options, cluster)
            ids = now.partitions()
            lacking = missing_topics(options, ids)
            if lacking is not None:
                raise OptionError(lacking)
            start = now.resolve(options.starting, ids)
            end = now.resolve(options.ending, ids)
        ranges = [OffsetRange(partition=p, start=start[p], end=end[p]) for p in ids]
        pieces = split(
            ranges,
            min_partitions=options.min_partitions,
            max_records=options.max_records_per_partition,
        )
        login = logins_of(options).current() if options.delegation_token else None
        return [RangePartition(piece, ids[piece.partition], login) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range."""
        if not isinstance(partition, RangePartition):
            return iter(())  # Spark's stand-in where there is nothing to read.
        options = self.options.with_login(partition.login)
        return read_range(options, partition.wanted, partition.topic_id)
