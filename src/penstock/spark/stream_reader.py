"""`spark.readStream`: what the next micro-batch takes, decided on the driver, read by the tasks.

Spark keeps one of these for the life of a query and asks it before each batch how far the topics
reach; the offsets it answers are what the checkpoint holds. It watches for partitions that appear,
for records that vanish, and commits how far the query has come as a consumer group.
"""

import time
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from penstock.client.cluster import ClusterClient
from penstock.client.raw_cluster import cluster_for
from penstock.client.raw_fetch import NO_TOPIC_ID
from penstock.client.values import TopicPartition
from penstock.errors import UnknownTopicOrPartition
from penstock.spark import data_loss
from penstock.spark.offsets import OffsetRange, Offsets, available, flat, limited, nested, split
from penstock.spark.options import OptionError, ReadOptions
from penstock.spark.partitions import TopicsNow, missing_topics
from penstock.spark.progress import Announcement, Progress, announce
from penstock.spark.range_reader import read_range
from penstock.spark.reader import RangePartition, warn_of_settings
from penstock.spark.topic_ids import TopicIds

_QUERY_ID = "sql.streaming.queryId"
# An idle query asks for the end of its topics a hundred times a second; new partitions can wait.
_LOOK_EVERY_S = 1.0

Nested = dict[str, dict[str, int]]


class FirstPartition(RangePartition):
    """What the first task of a run reads, and what it announces before."""

    def __init__(self, wanted: OffsetRange, topic_id: bytes, said: Announcement) -> None:
        super().__init__(wanted, topic_id)
        self.announcement = said


class PenstockStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read. The workers get a copy that knows the options alone."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self._watch: Watch | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"options": self.options, "_watch": None}

    @property
    def watch(self) -> "Watch":
        """The driver's view of the topics; made when first asked for, never on a worker."""
        if self._watch is None:
            self._watch = Watch(self.options)
        return self._watch

    def initialOffset(self) -> Nested:  # noqa: N802
        """Where a new query begins."""
        return nested(self.watch.begin())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit that Spark hands to `latestOffset`, except where a trigger takes all."""
        if self.options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self.options.max_offsets_per_trigger)
        if self.options.min_offsets_per_trigger is not None:
            return ReadMinRows(self.options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where the topics end now: the query stops there."""
        self.watch.stop_at_end_of_now()

    def latestOffset(self, start: Nested, limit: ReadLimit) -> Nested:  # noqa: N802
        """The end of the next batch; the start itself where there is none yet."""
        takes_all = isinstance(limit, ReadAllAvailable)
        return nested(self.watch.next_end(flat(start), takes_all=takes_all))

    def reportLatestOffset(self) -> Nested | None:  # noqa: N802
        """Where the topics ended at the last look, for the query's progress."""
        return nested(self.watch.latest) if self.watch.latest else None

    def partitions(self, start: Nested, end: Nested) -> list[InputPartition]:
        """The tasks of a batch."""
        return self.watch.plan(flat(start), flat(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task, on a worker."""
        assert isinstance(partition, RangePartition)
        if isinstance(partition, FirstPartition):
            _announce(self.options, partition.announcement)
        return read_range(self.options, partition.wanted, partition.topic_id)

    def commit(self, end: Nested) -> None:
        """Spark will not ask for anything before this again."""
        self.watch.processed(flat(end))

    def stop(self) -> None:
        """The query ended."""
        if self._watch is not None:
            self._watch.close()


class Watch:
    """The topics of one running query, as the driver sees them."""

    def __init__(self, options: ReadOptions) -> None:
        warn_of_settings(options)
        self.options = options
        self.latest: Offsets = {}
        self.topic_ids: dict[str, bytes] = {}
        self.progress = Progress(options, self.connect)
        self._cluster: ClusterClient | None = None
        self._kept_ids = TopicIds(options.checkpoint)
        self._anew: set[str] = set()  # Topics of which nothing was read yet, whatever Spark says.
        self._anew_planned: set[str] = set()
        self._there: Mapping[TopicPartition, bytes] = {}
        self._looked_s = float("-inf")
        self._target: Offsets | None = None  # Where a query of all that is available now stops.
        self._last_batch_s: float | None = None

    def connect(self) -> ClusterClient:
        if self._cluster is None:
            self._cluster = cluster_for(self.options.client_settings)
        return self._cluster

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    @property
    def now(self) -> TopicsNow:
        return TopicsNow(self.options, self.connect())

    def begin(self) -> Offsets:
        """The starting offsets of a query without a checkpoint."""
        self._kept_ids.forget()
        ids = self._look()
        lacking = missing_topics(self.options, ids)
        if lacking is not None:
            raise OptionError(lacking)
        return self.now.resolve(self.options.starting, ids)

    def stop_at_end_of_now(self) -> None:
        self._target = self.now.latest(self._look())

    def next_end(self, start: Offsets, *, takes_all: bool) -> Offsets:
        """Where the next batch ends; all before `start` is processed."""
        self.processed(start)
        begin = self._begin_and_end(start)
        end = self.latest if self._target is None else self._up_to_target(begin)
        if takes_all:
            return end
        if self._waits_for_more(available(begin, end)):
            return start
        if self.options.max_offsets_per_trigger is not None:
            end = limited(begin, end, self.options.max_offsets_per_trigger)
        if end != start:
            self._last_batch_s = time.monotonic()
        return end

    def _begin_and_end(self, start: Offsets) -> Offsets:
        """Look where the topics end now; where the next batch begins, with new partitions."""
        try:
            return self._looked_at(start, self._look(seconds_old=_LOOK_EVERY_S))
        except UnknownTopicOrPartition:  # Deleted since the last look.
            return self._looked_at(start, self._look())

    def _looked_at(self, start: Offsets, there: Mapping[TopicPartition, bytes]) -> Offsets:
        gone = {p: at for p, at in start.items() if p not in there}
        if gone:
            data_loss.report(self.options.fail_on_data_loss, data_loss.partitions_gone(gone))
        begin = self._begin(start, there)
        self.latest = self._ends(begin)
        return begin

    def plan(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """One range or more for each partition with records between the offsets."""
        if not self.topic_ids:
            self._look()
        fail = self.options.fail_on_data_loss
        gone = {p: start[p] for p in start if p not in end}
        if gone:
            data_loss.report(fail, data_loss.partitions_gone(gone))
        begin = self._begin(start, end)
        self._anew_planned = set(self._anew)
        back = [p for p in end if end[p] < begin[p]]
        for p in back:
            data_loss.report(fail, data_loss.went_back(p, begin[p], end[p]))
        begin.update(self.now.earliest(back))  # What is there now was never read.
        ranges = [OffsetRange(partition=p, start=begin[p], end=end[p]) for p in end]
        pieces = split(
            ranges,
            min_partitions=self.options.min_partitions,
            max_records=self.options.max_records_per_partition,
        )
        return self._tasks(pieces, begin)

    def processed(self, offsets: Offsets) -> None:
        """Tell the group how far the query is, and remember which topics it was in."""
        self.progress.commit(offsets)
        self._anew -= self._anew_planned
        self._anew_planned = set()
        self._kept_ids.note({t: i for t, i in self.topic_ids.items() if t not in self._anew})

    def _look(self, *, seconds_old: float = 0.0) -> Mapping[TopicPartition, bytes]:
        """The partitions now, or a moment ago; one with another id than before is created anew."""
        if time.monotonic() - self._looked_s < seconds_old:
            return self._there
        self._there = self.now.partitions()
        self._looked_s = time.monotonic()
        ids = {partition.topic: topic_id for partition, topic_id in self._there.items()}
        self.topic_ids = {**self.topic_ids, **ids}
        for topic in sorted(self._kept_ids.changed(ids) - self._anew):
            data_loss.report(self.options.fail_on_data_loss, data_loss.created_anew(topic))
            self._anew.add(topic)
        return self._there

    def _begin(
        self, start: Offsets, there: Mapping[TopicPartition, object]
    ) -> dict[TopicPartition, int]:
        """Where a batch that Spark lets begin at `start` really does."""
        begin = {**self._begin_of_new(start, there), **{p: start[p] for p in start if p in there}}
        return {**begin, **self.now.earliest(p for p in begin if p.topic in self._anew)}

    def _begin_of_new(
        self, start: Offsets, there: Mapping[TopicPartition, object]
    ) -> dict[TopicPartition, int]:
        """New partitions are read from their beginning, which should be offset 0."""
        new = [p for p in there if p not in start]
        earliest = self.now.earliest(new)
        for p, at in earliest.items():
            if at > 0:
                data_loss.report(self.options.fail_on_data_loss, data_loss.begins_late(p, at))
        return earliest

    def _ends(self, begin: Offsets) -> dict[TopicPartition, int]:
        """Where the partitions end; a new leader may for a moment not know all it has."""
        ends = self.now.latest(begin)
        for _ in range(self.options.fetch_offset_retries):
            if all(ends[p] >= begin[p] for p in begin):
                return ends
            time.sleep(self.options.fetch_offset_retry_interval_ms / 1000)
            ends = self.now.latest(begin)
        for p in begin:
            if ends[p] < begin[p]:
                sentence = data_loss.went_back(p, begin[p], ends[p])
                data_loss.report(self.options.fail_on_data_loss, sentence)
        return ends

    def _up_to_target(self, begin: Offsets) -> dict[TopicPartition, int]:
        """Up to the end of when the query started; later partitions are not its own."""
        target = self._target or {}
        ends = {}
        for p in begin:
            if p in target:
                is_past = target[p] < begin[p] <= self.latest[p]
                ends[p] = begin[p] if is_past else min(self.latest[p], target[p])
        return ends

    def _waits_for_more(self, offsets: int) -> bool:
        """Whether `minOffsetsPerTrigger` is not reached and the delay not over."""
        least = self.options.min_offsets_per_trigger
        if least is None or offsets >= least or self._target is not None:
            return False
        if self._last_batch_s is None:
            return False
        waited_ms = (time.monotonic() - self._last_batch_s) * 1000
        return waited_ms < self.options.max_trigger_delay_ms

    def _tasks(self, pieces: list[OffsetRange], begin: Offsets) -> list[InputPartition]:
        ids = [self.topic_ids.get(piece.partition.topic, NO_TOPIC_ID) for piece in pieces]
        tasks: list[InputPartition] = list(map(RangePartition, pieces, ids))
        said = self.progress.announcement(begin) if tasks else None
        if said is not None:
            tasks[0] = FirstPartition(pieces[0], ids[0], said)
        return tasks


def _announce(options: ReadOptions, announcement: Announcement) -> None:
    context = TaskContext.get()
    query_id = context.getLocalProperty(_QUERY_ID) if context is not None else None
    if query_id is None:
        return  # Not a streaming query's task; then nobody looks for the word either.
    with cluster_for(options.client_settings) as cluster:
        announce(options, cluster, announcement, query_id)
