"""What a subscription means on the cluster now: which partitions, and which offsets they have.

On the driver only. Options say what was asked for; this asks the cluster, tries again while it
may pass, and answers in offsets.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from penstock.client.operations.offsets import OffsetSpec, list_offsets
from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_cluster import persistently
from penstock.errors import ErrorCode, ProtocolError, error_for
from penstock.protocol.messages.metadata import MetadataResponseTopic
from penstock.spark.options import EARLIEST, LATEST, Bound, OptionError, ReadOptions
from penstock.spark.source import data_loss
from penstock.spark.source.offsets import Offsets

T = TypeVar("T")
_TIMEOUT_MS = 30_000


class TopicsNow:
    """Looks at the subscribed topics of one query."""

    def __init__(self, options: ReadOptions, cluster: ClusterClient) -> None:
        self.options = options
        self.cluster = cluster

    def partitions(self) -> dict[TopicPartition, bytes]:
        """Every partition to read now, and the id of its topic."""
        return self._persistently(self._partitions)

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that each partition still has."""
        return self._edge(partitions, OffsetSpec.EARLIEST)

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last record that may be read now."""
        return self._edge(partitions, OffsetSpec.LATEST)

    def resolve(self, bound: Bound, partitions: Iterable[TopicPartition]) -> Offsets:
        """The offsets that a bound stands for."""
        partitions = list(partitions)
        if bound.edge is not None:
            return self.earliest(partitions) if bound.edge == EARLIEST else self.latest(partitions)
        if bound.offsets is not None:
            return self._specific(bound, bound.offsets, partitions)
        if bound.timestamps_ms is not None:
            _check_covered(bound.option, bound.timestamps_ms, partitions)
            return self._timed(bound, {p: bound.timestamps_ms[p] for p in partitions})
        assert bound.timestamp_ms is not None
        return self._timed(bound, dict.fromkeys(partitions, bound.timestamp_ms))

    def _partitions(self) -> dict[TopicPartition, bytes]:
        wanted = self.options.subscription
        if wanted.pattern is not None:
            matches = re.compile(wanted.pattern).fullmatch
            every = self.cluster.metadata(None).topics
            topics = [t for t in every if not t.is_internal and t.name and matches(t.name)]
            return _numbered(topics)
        names = wanted.topics or tuple(dict.fromkeys(p.topic for p in wanted.partitions))
        there = _numbered(self._existing(names))
        if not wanted.partitions:
            return there
        return {p: there[p] for p in wanted.partitions if p in there}

    def _existing(self, names: Iterable[str]) -> list[MetadataResponseTopic]:
        found = []
        for topic in self.cluster.metadata(list(names)).topics:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue
            if topic.error_code:
                raise error_for(topic.error_code, f"Topic {topic.name!r}: {topic.error_code}")
            found.append(topic)
        return found

    def _specific(
        self, bound: Bound, offsets: Offsets, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        _check_covered(bound.option, offsets, partitions)
        first, last = self.earliest(partitions), self.latest(partitions)
        edges = {EARLIEST: first, LATEST: last}
        found = {}
        for p in partitions:
            at = edges[offsets[p]][p] if offsets[p] < 0 else offsets[p]
            if not first[p] <= at <= last[p]:
                sentence = data_loss.position_gone(bound.option, p, at, (first[p], last[p]))
                data_loss.report(self.options.fail_on_data_loss, sentence)
                at = min(max(at, first[p]), last[p])
            found[p] = at
        return found

    def _timed(self, bound: Bound, times_ms: Offsets) -> dict[TopicPartition, int]:
        """The first record at or after each time; the end where there is none so late."""
        found = self._persistently(lambda: self._list(times_ms))
        late = sorted(p for p, at in found.items() if at is None)
        is_start = bound.option.startswith("starting")
        if late and is_start and not self.options.latest_if_no_timestamp:
            p = late[0]
            raise OptionError(
                f"Option {bound.option!r}: topic {p.topic!r}, partition {p.partition} has no "
                f"record at or after {times_ms[p]} ms; set 'startingOffsetsByTimestampStrategy' "
                "to 'latest' to begin at its end"
            )
        ends = self.latest(late) if late else {}
        return {p: at.offset if at is not None else ends[p] for p, at in found.items()}

    def _edge(
        self, partitions: Iterable[TopicPartition], edge: OffsetSpec
    ) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(partitions, int(edge))
        if not wanted:
            return {}
        found = self._persistently(lambda: self._list(wanted))
        return {p: at.offset if at is not None else 0 for p, at in found.items()}

    def _list(self, wanted: Offsets) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        answers = list_offsets(
            self.cluster,
            wanted,
            timeout_ms=_TIMEOUT_MS,
            read_committed=self.options.read_committed,
        )
        found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        for partition, answer in answers.items():
            if isinstance(answer, ProtocolError):
                raise answer
            found[partition] = answer
        return found

    def _persistently(self, attempt: Callable[[], T]) -> T:
        return persistently(
            self.cluster,
            attempt,
            retries=self.options.fetch_offset_retries,
            pause_s=self.options.fetch_offset_retry_interval_ms / 1000,
        )


def _numbered(topics: Iterable[MetadataResponseTopic]) -> dict[TopicPartition, bytes]:
    return {
        TopicPartition(topic.name or "", part.partition_index): topic.topic_id
        for topic in topics
        for part in topic.partitions
    }


def missing_topics(options: ReadOptions, there: Iterable[TopicPartition]) -> str | None:
    """What a subscription names that does not exist, as a sentence; None: all is there."""
    wanted, found = options.subscription, set(there)
    topics = {partition.topic for partition in found}
    for name in wanted.topics:
        if name not in topics:
            return f"Topic {name!r} of the option 'subscribe' does not exist"
    for partition in wanted.partitions:
        if partition not in found:
            return (
                f"Topic {partition.topic!r}, partition {partition.partition} of the option "
                "'assign' does not exist"
            )
    return None


def _check_covered(
    option: str, given: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]
) -> None:
    wanted, named = set(partitions), set(given)
    if wanted == named:
        return
    lacking = ", ".join(map(str, sorted(wanted - named))) or "none"
    extra = ", ".join(map(str, sorted(named - wanted))) or "none"
    raise OptionError(
        f"Option {option!r} must name every partition that is read (-1 for latest, -2 for "
        f"earliest). Not named: {lacking}. Named, but not read: {extra}"
    )
