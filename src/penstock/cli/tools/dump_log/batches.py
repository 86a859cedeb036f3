"""Batches and records of a segment, a line each, as Kafka's DumpLogSegments prints them."""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from penstock.cli.tools.dump_log.decoders import Decode
from penstock.errors import CorruptRecord, ProtocolError
from penstock.records.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    check_batch,
    read_header,
    read_records,
)
from penstock.records.control import read_marker
from penstock.records.record import Record

_SEQUENCE_MASK = 0x7FFF_FFFF


class FoundBatch(NamedTuple):
    """A batch, where it begins, and whether its checksum is right."""

    position: int
    header: BatchHeader
    data: memoryview
    is_valid: bool


class BatchPrinter:
    """Prints segments; which columns is chosen once."""

    def __init__(
        self, *, decode: Decode, deep: bool, data: bool, metadata: bool, bytes_max: int
    ) -> None:
        self._decode = decode
        self._deep = deep
        self._data = data
        self._metadata = metadata
        self._bytes_max = bytes_max

    def print(self, path: Path) -> list[tuple[int, int]]:
        """Print a segment; pairs of offsets that do not follow each other."""
        print(f"Log starting offset: {int(path.name.partition('.')[0])}")
        gaps: list[tuple[int, int]] = []
        last_offset: int | None = None
        end = 0
        for batch in batches(path, bytes_max=self._bytes_max):
            print(batch_line(batch))
            end = batch.position + batch.header.size_bytes
            if self._deep:
                last_offset = self._print_records(batch, last_offset, gaps)
        left = min(path.stat().st_size, self._bytes_max) - end
        if left > 0 and self._bytes_max >= path.stat().st_size:
            print(f"Found {left} invalid bytes at the end of {path.name}")
        return gaps

    def _print_records(
        self, batch: FoundBatch, last_offset: int | None, gaps: list[tuple[int, int]]
    ) -> int | None:
        try:
            for record in read_records(batch.data):
                if last_offset is not None and record.offset != last_offset + 1:
                    gaps.append((last_offset, record.offset))
                last_offset = record.offset
                print(self.record_line(batch.header, record))
        except ProtocolError as error:
            print(f"| The records of this batch cannot be read: {error}")
        return last_offset

    def record_line(self, header: BatchHeader, record: Record) -> str:
        """`| offset: 0 CreateTime: ... keySize: 2 valueSize: 2 sequence: 0 headerKeys: [] ...`."""
        words = ["|", *record_words(header, record)] if self._metadata else []
        if header.is_control:
            words += _marker_words(record) if self._metadata else []
        elif self._data:
            words = words or ["|"]
            key, value = self._decode(record.key, record.value)
            words += [f"key: {key}"] if key is not None else []
            words += [f"payload: {value}"] if value is not None else []
        return " ".join(words)


def batches(path: Path, *, bytes_max: int) -> Iterator[FoundBatch]:
    """The batches of a file, to its end or to the first that is not whole."""
    size = path.stat().st_size
    if size == 0:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        position = 0
        while position + HEADER_BYTES <= size and position < bytes_max:
            # A copy of one batch, so that nothing points into the map when it is closed.
            found = _batch_at(mapped, position, size)
            if found is None:
                return
            yield found
            position += found.header.size_bytes


def batch_line(batch: FoundBatch) -> str:
    """`baseOffset: 0 lastOffset: 1 count: 2 baseSequence: 0 ... isvalid: true`."""
    header = batch.header
    horizon = header.delete_horizon_ms
    words = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": _sequence(header, header.last_offset),
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": _word(header.is_transactional),
        "isControl": _word(header.is_control),
        "deleteHorizonMs": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
        "position": batch.position,
        _time_name(header): header.max_timestamp,
        "size": header.size_bytes,
        "magic": header.magic,
        "compresscodec": _codec(header),
        "crc": header.crc,
        "isvalid": _word(batch.is_valid),
    }
    return " ".join(f"{name}: {value}" for name, value in words.items())


def record_words(header: BatchHeader, record: Record) -> list[str]:
    """What is known of a record besides its key and value."""
    names = ",".join(name for name, _ in record.headers)
    return [
        f"offset: {record.offset}",
        f"{_time_name(header)}: {record.timestamp}",
        f"keySize: {-1 if record.key is None else len(record.key)}",
        f"valueSize: {-1 if record.value is None else len(record.value)}",
        f"sequence: {_sequence(header, record.offset)}",
        f"headerKeys: [{names}]",
    ]


def _batch_at(mapped: mmap.mmap, position: int, size: int) -> FoundBatch | None:
    header = read_header(mapped[position : position + HEADER_BYTES])
    length = header.batch_length + LOG_OVERHEAD
    if header.magic != MAGIC or length < HEADER_BYTES or position + length > size:
        return None
    data = memoryview(mapped[position : position + length])
    try:
        check_batch(data)
    except CorruptRecord:
        return FoundBatch(position, header, data, False)
    return FoundBatch(position, header, data, True)


def _marker_words(record: Record) -> list[str]:
    try:
        marker = read_marker(record)
    except CorruptRecord as error:
        return [f"controlType: unreadable ({error})"]
    if marker is None:
        return ["controlType: UNKNOWN"]
    return [
        f"endTxnMarker: {marker.type.name}",
        f"coordinatorEpoch: {marker.coordinator_epoch}",
    ]


def _sequence(header: BatchHeader, offset: int) -> int:
    if header.base_sequence < 0:
        return -1
    return (header.base_sequence + offset - header.base_offset) & _SEQUENCE_MASK


def _time_name(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _codec(header: BatchHeader) -> str:
    try:
        return header.codec.name.lower()
    except ProtocolError:
        return "unknown"


def _word(flag: bool) -> str:
    return "true" if flag else "false"
