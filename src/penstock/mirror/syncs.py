"""MirrorMaker 2's own records, byte for byte: offset syncs, checkpoints, heartbeats.

Java's RemoteClusterUtils reads the last two, and a MirrorMaker 2 that takes over reads the first.
Beside them stands the one record of ours: the runs that a transaction began in a partition.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from penstock.errors import CorruptRecord
from penstock.mirror.runs import Run

_VERSION = 0
_SHORT, _INT, _LONG = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")
_VERSION_AND_LONG, _VERSION_AND_LONGS = struct.Struct(">hq"), struct.Struct(">hqq")
_TEXT_BYTES_MAX = (1 << 15) - 1


class KeyValue(NamedTuple):
    """What a record of these topics has; no value: what the key names is gone."""

    key: bytes
    value: bytes | None


class OffsetSync(NamedTuple):
    """One record's two offsets."""

    topic: str  # As the source calls it.
    partition: int
    upstream: int
    downstream: int

    def encoded(self) -> KeyValue:
        """As a record of mm2-offset-syncs."""
        return KeyValue(
            _text(self.topic) + _INT.pack(self.partition),
            _TWO_LONGS.pack(self.upstream, self.downstream),
        )


class Checkpoint(NamedTuple):
    """How far a group has read, on both sides."""

    group: str
    topic: str  # As the target calls it.
    partition: int
    upstream: int
    downstream: int
    metadata: str

    def encoded(self) -> KeyValue:
        """As a record of checkpoints."""
        return KeyValue(
            _text(self.group) + _text(self.topic) + _INT.pack(self.partition),
            _VERSION_AND_LONGS.pack(_VERSION, self.upstream, self.downstream)
            + _text(self.metadata),
        )


class Heartbeat(NamedTuple):
    """A flow was alive at this time."""

    source: str
    target: str
    time_ms: int

    def encoded(self) -> KeyValue:
        """As a record of heartbeats."""
        return KeyValue(
            _text(self.source) + _text(self.target),
            _VERSION_AND_LONG.pack(_VERSION, self.time_ms),
        )


class RunsKey(NamedTuple):
    """Which runs a record has: those of a partition that begin at this source offset and behind."""

    topic: str  # As the source calls it.
    partition: int
    first: int

    def encoded(self) -> bytes:
        """As the key of a record."""
        return _text(self.topic) + _INT.pack(self.partition) + _LONG.pack(self.first)


def encode_runs(topic: str, partition: int, runs: Sequence[Run]) -> KeyValue:
    """The runs that one transaction began in a partition."""
    key = RunsKey(topic, partition, runs[0].source)
    return KeyValue(key.encoded(), b"".join(_TWO_LONGS.pack(*run) for run in runs))


def decode_runs_key(data: bytes) -> RunsKey:
    """Which runs a record is about; CorruptRecord where it is none of these."""
    topic, at = _read_text(data, 0)
    try:
        (partition,), (first,) = _INT.unpack_from(data, at), _LONG.unpack_from(data, at + 4)
    except struct.error:
        raise CorruptRecord("a record of runs has a key that ends too early") from None
    return RunsKey(topic, partition, first)


def decode_runs(data: bytes) -> list[Run]:
    """The runs of a record."""
    if len(data) % _TWO_LONGS.size:
        raise CorruptRecord(f"a record of runs has {len(data)} bytes, not sixteen for each")
    return [Run(source, target) for source, target in _TWO_LONGS.iter_unpack(data)]


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) > _TEXT_BYTES_MAX:
        raise CorruptRecord(f"a text of {len(data)} bytes is too long for a record of the mirror")
    return _SHORT.pack(len(data)) + data


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    if at + 2 > len(data):
        raise CorruptRecord("a text is missing in a record of the mirror")
    (size,) = _SHORT.unpack_from(data, at)
    end = at + 2 + size
    if size < 0 or end > len(data):
        raise CorruptRecord(f"a text of {size} bytes does not fit into its record")
    return data[at + 2 : end].decode("utf-8", "replace"), end
