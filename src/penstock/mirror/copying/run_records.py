"""The topic of runs, read to its end and followed: the exact maps of all partitions of a flow."""

from penstock.client.wire.cluster import ClusterClient
from penstock.mirror.copying.kept import kept_batches
from penstock.mirror.copying.reading import Displaced, ReadSettings, SourceReader, bounds_of
from penstock.mirror.runs import Run, RunMap, forgettable
from penstock.mirror.syncs import KeyValue, RunsKey, decode_runs, decode_runs_key
from penstock.records.batch import read_records
from penstock.records.record import Record
from penstock.records.topic_partition import TopicPartition


class RunRecords:
    """What the topic says, by source partition; `catch_up` reads what was committed since."""

    def __init__(self, cluster: ClusterClient, at: TopicPartition) -> None:
        self._cluster = cluster
        self._at = at
        self._reader = SourceReader(cluster, {at: 0}, ReadSettings())
        self._groups: dict[TopicPartition, dict[int, list[Run]]] = {}
        self._maps: dict[TopicPartition, RunMap] = {}

    def catch_up(self) -> None:
        """Read on to where the topic ends now."""
        start, end = bounds_of(self._cluster, [self._at], read_committed=True)[self._at]
        self._reader.positions[self._at] = max(start, self._reader.positions[self._at])
        while self._reader.positions[self._at] < end:
            for found in self._reader.poll():
                if isinstance(found, Displaced):
                    self._reader.positions[self._at] = found.start
                    continue
                place = self._reader.positions[self._at]
                kept = kept_batches(found.records, found.aborted, offset=place)
                for piece in kept.pieces:
                    for record in read_records(piece.data):
                        self._take(record)
                self._reader.positions[self._at] = kept.next_offset

    def map_of(self, source: TopicPartition) -> RunMap | None:
        """The map of a partition; None: nothing of it was ever copied."""
        groups = self._groups.get(source)
        if not groups:
            return None
        if source not in self._maps:
            ordered = sorted(groups.values(), key=lambda runs: runs[0].target)
            self._maps[source] = RunMap(run for runs in ordered for run in runs)
        return self._maps[source]

    def all_keys(self, source: TopicPartition) -> list[KeyValue]:
        """Records that take back all that is said of a partition."""
        return [_tombstone(source, first) for first in self._groups.get(source, ())]

    def outlived_keys(self, source: TopicPartition, start: int) -> list[KeyValue]:
        """Records that take back what nobody needs who reads from this source offset."""
        firsts = sorted(self._groups.get(source, ()))
        return [_tombstone(source, first) for first in forgettable(firsts, start)]

    def _take(self, record: Record) -> None:
        key = decode_runs_key(record.key or b"")
        source = TopicPartition(key.topic, key.partition)
        groups = self._groups.setdefault(source, {})
        known = self._maps.get(source)
        if not record.value:
            groups.pop(key.first, None)
            self._maps.pop(source, None)
            return
        runs = decode_runs(record.value)
        is_next = not groups or key.first > next(reversed(groups))
        groups[key.first] = runs
        if known is not None and is_next:
            known.extend(runs)
        else:
            self._maps.pop(source, None)


def _tombstone(source: TopicPartition, first: int) -> KeyValue:
    return KeyValue(RunsKey(source.topic, source.partition, first).encoded(), None)
