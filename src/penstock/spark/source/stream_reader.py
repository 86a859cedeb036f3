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

from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_cluster import cluster_for
from penstock.client.wire.raw_fetch import NO_TOPIC_ID
from penstock.errors import UnknownTopicOrPartition
from penstock.spark.options import OptionError, ReadOptions
from penstock.spark.source import data_loss
from penstock.spark.source.offsets import (
    OffsetRange,
    Offsets,
    available,
    flat,
    limited,
    nested,
    split,
)
from penstock.spark.source.partitions import TopicsNow, missing_topics
from penstock.spark.source.progress import Announcement, ProgressCommits, announce
from penstock.spark.source.range_reader import read_batches, read_range
from penstock.spark.source.reader import (
    RangePartition,
    logins_of,
    options_of_executors,
    warn_of_settings,
)
from penstock.spark.source.topic_ids import TopicIds
from penstock.spark.source.unreadable import UnreadableBatch

_QUERY_ID = "sql.streaming.queryId"
# An idle query asks for the end of its topics a hundred times a second; new partitions can wait.
_LOOK_EVERY_S = 1.0

Nested = dict[str, dict[str, int]]


class FirstPartition(RangePartition):
    """What the first task of a run reads, and what it announces before."""

    def __init__(
        self,
        wanted: OffsetRange,
        topic_id: bytes,
        login: Mapping[str, str] | None,
        said: Announcement,
    ) -> None:
        super().__init__(wanted, topic_id, login)
        self.announcement = said


class PenstockStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read. The workers get a copy that knows the options alone."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self._watch: TopicWatch | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"options": options_of_executors(self.options), "_watch": None}

    @property
    def watch(self) -> "TopicWatch":
        """The driver's view of the topics; made when first asked for, never on a worker."""
        if self._watch is None:
            self._watch = TopicWatch(self.options)
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
        wanted = self._announce_first(partition)
        options = self.options.with_login(wanted.login)
        return read_range(options, wanted.wanted, wanted.topic_id)

    def read_batches(self, partition: InputPartition) -> Iterator[pa.RecordBatch | UnreadableBatch]:
        """The same for a sink of our own, which does with unreadable batches what it likes."""
        wanted = self._announce_first(partition)
        options = self.options.with_login(wanted.login)
        return read_batches(options, wanted.wanted, wanted.topic_id)

    def _announce_first(self, partition: InputPartition) -> RangePartition:
        assert isinstance(partition, RangePartition)
        if isinstance(partition, FirstPartition):
            _announce(self.options.with_login(partition.login), partition.announcement)
        return partition

    def commit(self, end: Nested) -> None:
        """Spark will not ask for anything before this again."""
        self.watch.commit_progress(flat(end))

    def stop(self) -> None:
        """The query ended."""
        if self._watch is not None:
            self._watch.close()


class TopicWatch:
    """The topics of one running query, as the driver sees them."""

    def __init__(self, options: ReadOptions) -> None:
        warn_of_settings(options)
        self.options = options
        self.latest: Offsets = {}
        self.topic_ids: dict[str, bytes] = {}
        self.progress = ProgressCommits(options, self.connect)
        self._cluster: ClusterClient | None = None
        self._logins = logins_of(options) if options.delegation_token else None
        self._kept_ids = TopicIds(options.checkpoint)
        # Topics deleted and created again under their name. Spark's offsets are those of the old
        # topic, so these are read from their beginning until a batch of them was committed.
        self._recreated: set[str] = set()
        self._recreated_planned: set[str] = set()
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
        self.commit_progress(start)
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
            return self._look_at(start, self._look(seconds_old=_LOOK_EVERY_S))
        except UnknownTopicOrPartition:  # Deleted since the last look.
            return self._look_at(start, self._look())

    def _look_at(self, start: Offsets, there: Mapping[TopicPartition, bytes]) -> Offsets:
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
        self._recreated_planned = set(self._recreated)
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

    def commit_progress(self, offsets: Offsets) -> None:
        """Commit the offsets to the group, and remember the ids of the topics they belong to."""
        self.progress.commit(offsets)
        self._recreated -= self._recreated_planned
        self._recreated_planned = set()
        self._kept_ids.note({t: i for t, i in self.topic_ids.items() if t not in self._recreated})

    def _look(self, *, seconds_old: float = 0.0) -> Mapping[TopicPartition, bytes]:
        """The partitions now, or a moment ago; a topic with another id was created again."""
        if time.monotonic() - self._looked_s < seconds_old:
            return self._there
        self._there = self.now.partitions()
        self._looked_s = time.monotonic()
        ids = {partition.topic: topic_id for partition, topic_id in self._there.items()}
        self.topic_ids = {**self.topic_ids, **ids}
        for topic in sorted(self._kept_ids.changed(ids) - self._recreated):
            data_loss.report(self.options.fail_on_data_loss, data_loss.recreated(topic))
            self._recreated.add(topic)
        return self._there

    def _begin(
        self, start: Offsets, there: Mapping[TopicPartition, object]
    ) -> dict[TopicPartition, int]:
        """Where a batch really begins that Spark wants from `start` on."""
        begin = {**self._begin_of_new(start, there), **{p: start[p] for p in start if p in there}}
        return {**begin, **self.now.earliest(p for p in begin if p.topic in self._recreated)}

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
        """Where the partitions end; asked again while a new leader reports less than was read."""
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
        """The ends as they were when the query started; later partitions are not read."""
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
        login = self._logins.current() if self._logins is not None and pieces else None
        tasks: list[InputPartition] = [
            RangePartition(piece, topic_id, login)
            for piece, topic_id in zip(pieces, ids, strict=True)
        ]
        said = self.progress.announcement(begin) if tasks else None
        if said is not None:
            tasks[0] = FirstPartition(pieces[0], ids[0], login, said)
        return tasks


def _announce(options: ReadOptions, announcement: Announcement) -> None:
    context = TaskContext.get()
    query_id = context.getLocalProperty(_QUERY_ID) if context is not None else None
    if query_id is None:
        return  # Not a task of a streaming query: nobody looks for the announcement.
    with cluster_for(options.client_settings) as cluster:
        announce(options, cluster, announcement, query_id)
