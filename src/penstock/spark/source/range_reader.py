"""One task's work: the records of one range of offsets, as Arrow batches, on a worker.

The same for batches and streams, and the same each time it is asked for a range, which is what
lets Spark replay a batch. Bytes come from `penstock.client.wire.raw_fetch`, columns from
`arrow_records`.
"""

import logging
import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

from penstock.client.errors import ClientError
from penstock.client.wire.raw_cluster import cluster_for, whole_number
from penstock.client.wire.raw_fetch import (
    FETCH_BYTES,
    NO_TOPIC_ID,
    Fetched,
    OffsetGone,
    PartitionFetcher,
    TopicGone,
)
from penstock.errors import CorruptRecord
from penstock.spark.columns.arrow_records import FetchDecoder
from penstock.spark.columns.batch_walk import Damaged, offset_after
from penstock.spark.options import ReadOptions
from penstock.spark.schema import RANGE_END
from penstock.spark.source import data_loss
from penstock.spark.source.offsets import OffsetRange
from penstock.spark.source.unreadable import (
    UnreadableBatch,
    UnreadableBatchError,
    marker_row,
    one_row,
    unreadable,
)

_FIRST_BYTES_PER_RECORD = 2048  # A guess until the first fetch tells.
_FETCH_BYTES_MIN = 256 * 1024
_MAX_WAIT_MS = 500

_LOG = logging.getLogger("penstock.spark")


def read_range(
    options: ReadOptions, wanted: OffsetRange, topic_id: bytes = NO_TOPIC_ID
) -> Iterator[pa.RecordBatch]:
    """The records of the range that exist; DataLossError where some should and do not.

    A batch that cannot be read is what the options say: an error, a row without value, or nothing.
    Behind the records may come a row that tells where the range ends.
    """
    for found in read_batches(options, wanted, topic_id):
        if not isinstance(found, UnreadableBatch):
            yield found
        elif options.on_unreadable_batch == "fail":
            raise found.error()
        elif options.on_unreadable_batch == "null":
            yield marker_row(found, options.columns)
        else:
            _LOG.warning("Left out: %s", found.sentence)
    if options.include_range_ends:
        yield end_row(wanted, options.columns)


def end_row(wanted: OffsetRange, columns: Sequence[str]) -> pa.RecordBatch:
    """The end of a range as a row: no key, no value, and the first offset that was not read."""
    told = {
        "topic": wanted.partition.topic,
        "partition": wanted.partition.partition,
        "offset": wanted.end,
        "timestamp": 0,
        "timestampType": RANGE_END,
    }
    return one_row(told, columns)


def read_batches(
    options: ReadOptions, wanted: OffsetRange, topic_id: bytes = NO_TOPIC_ID
) -> Iterator[pa.RecordBatch | UnreadableBatch]:
    """The same with batches that cannot be read as they are."""
    with cluster_for(options.client_settings) as cluster:
        fetcher = PartitionFetcher(
            cluster,
            wanted.partition,
            topic_id=topic_id,
            read_committed=options.read_committed,
            fetch_bytes=_first_fetch_bytes(options, wanted),
            max_wait_ms=whole_number(options.client_settings, "fetch.max.wait.ms", _MAX_WAIT_MS),
            timeout_s=options.poll_timeout_ms / 1000,
        )
        try:
            yield from _Reading(options, wanted, fetcher).batches()
        finally:
            fetcher.close()


class _Reading:
    """Where a task is in its range."""

    def __init__(
        self, options: ReadOptions, wanted: OffsetRange, fetcher: PartitionFetcher
    ) -> None:
        self.options = options
        self.wanted = wanted
        self.fetcher = fetcher
        self.position = wanted.start
        self.fetch_bytes_max = _fetch_bytes_max(options)
        self.decoder = FetchDecoder(*wanted.partition, options.columns)

    def batches(self) -> Iterator[pa.RecordBatch | UnreadableBatch]:
        while self.position < self.wanted.end:
            fetched = self._next_fetch()
            if fetched is None:
                return
            start, self.position = (
                self.position,
                max(self.position, offset_after(fetched.records) or 0),
            )
            if self.position < self.wanted.end:
                self._size_next(len(fetched.records), self.position - start)
                self.fetcher.ask_ahead(self.position)
            for one in self._decoded(fetched, start):
                found = self._told(one, start) if isinstance(one, Damaged) else one
                if found is not None:
                    yield found

    def _decoded(self, fetched: Fetched, start: int) -> Iterator[pa.RecordBatch | Damaged]:
        """What was fetched; bytes that are not what was written are an error with their place."""
        try:
            return self.decoder.decode(
                fetched.records, start=start, end=self.wanted.end, aborted=fetched.aborted
            ).batches
        except CorruptRecord as error:
            topic, partition = self.wanted.partition
            raise UnreadableBatchError(
                f"what was fetched of {topic}-{partition} from offset {start} on is damaged: "
                f"{error}"
            ) from error

    def _told(self, damaged: Damaged, start: int) -> UnreadableBatch | None:
        return unreadable(damaged, self.wanted.partition, start, self.wanted.end)

    def _next_fetch(self) -> Fetched | None:
        """A fetch with records in it; None: the rest of the range is lost, and that is accepted."""
        deadline_s = time.monotonic() + self.fetcher.timeout_s
        while True:
            try:
                fetched = self.fetcher.fetch(self.position)
            except TopicGone as gone:
                data_loss.report(self.options.fail_on_data_loss, self._unread(str(gone)))
                return None
            except OffsetGone as gone:
                if not self._skip_to_what_is_left(gone):
                    return None
                continue
            if len(fetched.records):
                return fetched
            if time.monotonic() > deadline_s:
                raise ClientError(self._stalled(fetched))

    def _skip_to_what_is_left(self, gone: OffsetGone) -> bool:
        """Go on at the partition's first offset; False: it is beyond the range."""
        there = (gone.start or 0, gone.end or 0)
        wanted = (self.position, self.wanted.end)
        sentence = data_loss.out_of_range(self.wanted.partition, wanted, there)
        data_loss.report(self.options.fail_on_data_loss, sentence)
        if there[0] <= self.position:  # It is the end that is missing.
            return False
        self.position = there[0]
        return self.position < self.wanted.end

    def _size_next(self, size_bytes: int, offsets: int) -> None:
        """Ask for about what is left of the range, so that little is fetched for nothing."""
        left = (self.wanted.end - self.position) * size_bytes // max(offsets, 1)
        enough = left + left // 8 + _FETCH_BYTES_MIN
        self.fetcher.fetch_bytes = min(self.fetch_bytes_max, enough)

    def _unread(self, reason: str) -> str:
        return (
            f"{reason[0].upper()}{reason[1:]}: partition {self.wanted.partition.partition}, "
            f"offsets {self.position} to {self.wanted.end} (exclusive) were not read"
        )

    def _stalled(self, fetched: Fetched) -> str:
        topic, partition = self.wanted.partition
        return (
            f"Topic {topic!r}, partition {partition}: nothing came for offset {self.position} "
            f"within {self.fetcher.timeout_s:g} s, though records up to {self.wanted.end} were "
            f"there. High watermark {fetched.high_watermark}, last stable offset "
            f"{fetched.last_stable}"
        )


def _fetch_bytes_max(options: ReadOptions) -> int:
    settings = options.client_settings
    per_partition = whole_number(settings, "max.partition.fetch.bytes", FETCH_BYTES)
    return max(1, min(per_partition, whole_number(settings, "fetch.max.bytes", per_partition)))


def _first_fetch_bytes(options: ReadOptions, wanted: OffsetRange) -> int:
    guess = max(_FETCH_BYTES_MIN, wanted.size * _FIRST_BYTES_PER_RECORD)
    return min(_fetch_bytes_max(options), guess)
