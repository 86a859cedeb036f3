"""Producer state on disk: the `.snapshot` files.

A snapshot named after offset N holds what is known of every producer from the records below N:

    int16   version, 1
    uint32  CRC-32C of everything behind it
    int32   number of entries, each of 46 bytes:
      int64  producer id
      int16  producer epoch
      int32  last sequence number (-1)
      int64  last offset (-1)
      int32  last offset of the last batch, less its first
      int64  timestamp of the last batch or marker (-1)
      int32  epoch of the coordinator that wrote the last marker (-1)
      int64  first offset of the open transaction (-1)

Only a producer's last batch is in it, so a producer that retries an older one right after a clean
restart is told it is out of order, as with Apache Kafka.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from struct import Struct, error
from typing import Final

from penstock.errors import CorruptRecord
from penstock.records.checksum import crc32c
from penstock.storage.producers.producers import ProducerEntry, SequencedBatch

SUFFIX: Final = ".snapshot"
VERSION: Final = 1
_HEAD: Final = Struct(">hIi")
_ENTRY: Final = Struct(">qhiqiqiq")
_CRC_END: Final = 6


def snapshot_path(directory: Path, offset: int) -> Path:
    return directory / f"{offset:020d}{SUFFIX}"


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    packed = [_pack(entry) for entry in entries]
    body = len(packed).to_bytes(4, "big") + b"".join(packed)
    return VERSION.to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body


def _pack(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else None
    return _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        last.last_sequence if last else -1,
        last.last_offset if last else -1,
        last.offset_delta if last else 0,
        entry.last_timestamp,
        entry.coordinator_epoch,
        -1 if entry.open_since is None else entry.open_since,
    )


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The entries; CorruptRecord if the bytes are not a whole snapshot."""
    try:
        version, crc, count = _HEAD.unpack_from(data)
    except error:
        raise CorruptRecord(f"{len(data)} bytes are too few for a producer snapshot") from None
    if version != VERSION:
        raise CorruptRecord(f"a producer snapshot has the unknown version {version}")
    if crc32c(data[_CRC_END:]) != crc:
        raise CorruptRecord("the CRC of a producer snapshot is wrong")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptRecord(f"a producer snapshot of {count} entries has {len(data)} bytes")
    return [_entry(*fields) for fields in _ENTRY.iter_unpack(data[_HEAD.size :])]


def _entry(
    producer_id: int,
    producer_epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    first_offset: int,
) -> ProducerEntry:
    last = SequencedBatch(last_sequence, last_offset, offset_delta, timestamp)
    return ProducerEntry(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        last_timestamp=timestamp,
        open_since=first_offset if first_offset >= 0 else None,
        batches=(last,) if last_offset >= 0 else (),
    )


def write_snapshot(path: Path, entries: Iterable[ProducerEntry]) -> None:
    """Write it whole or leave no file; it reaches the disk with the next flush of the log."""
    data = encode_snapshot(entries)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        if os.write(fd, data) != len(data):
            raise OSError(errno.ENOSPC, "a producer snapshot was written only in part", str(path))
    except OSError:
        path.unlink()
        raise
    finally:
        os.close(fd)


def read_snapshot(path: Path) -> list[ProducerEntry]:
    return decode_snapshot(path.read_bytes())
