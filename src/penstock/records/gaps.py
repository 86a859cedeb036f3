"""A batch without some of its records, as compaction would leave it.

What stays keeps its offsets and its bytes: base offset, last offset delta and base sequence are
those of the whole batch, so the log counts the same offsets and the same sequence numbers.
"""

from collections.abc import Collection

from penstock.errors import CorruptRecord
from penstock.records import Bytes
from penstock.records.batch import (
    BatchHeader,
    emptied_batch,
    read_header,
    read_records,
    seal,
    view_payload,
)
from penstock.records.compression import DECOMPRESSED_BYTES_MAX, compress


def leave_out(
    batch: Bytes,
    dropped: Collection[int],
    *,
    level: int | None = None,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bytearray:
    """The batch without the records at these places, compressed as it was."""
    header = read_header(batch)
    payload = bytes(view_payload(header, batch, bytes_max=bytes_max))
    ends = _ends(payload, header.record_count)
    kept = [index for index in range(header.record_count) if index not in dropped]
    if not kept:
        return emptied_batch(header)
    parts = (payload[ends[index - 1] if index else 0 : ends[index]] for index in kept)
    left = header._replace(
        record_count=len(kept), max_timestamp=_latest(header, batch, set(kept), bytes_max)
    )
    return seal(left, compress(header.codec, b"".join(parts), level=level))


def _latest(header: BatchHeader, batch: Bytes, kept: Collection[int], bytes_max: int) -> int:
    """The latest timestamp of what stays; the broker's own clock stands for all records."""
    if header.is_log_append_time:
        return header.max_timestamp
    records = read_records(batch, bytes_max=bytes_max, are_views=True)
    return max(record.timestamp for index, record in enumerate(records) if index in kept)


def _ends(payload: bytes, record_count: int) -> list[int]:
    """Where each record ends."""
    ends: list[int] = []
    at = 0
    for _ in range(record_count):
        bits = shift = 0
        while True:
            if at >= len(payload) or shift > 28:
                raise CorruptRecord("the records end before their count is reached")
            byte = payload[at]
            at += 1
            bits |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        at += bits >> 1
        ends.append(at)
    if at != len(payload):
        raise CorruptRecord("the records of a batch do not fill it")
    return ends
