"""Records of one partition from an offset on, some at a time, without a consumer or a group."""

from dataclasses import dataclass

from penstock.client.admin import Admin
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.values import TopicPartition
from penstock.client.wire.fetched_records import committed_records
from penstock.client.wire.raw_fetch import PartitionFetcher, TopicGone
from penstock.errors import ProtocolError, UnknownTopicOrPartition
from penstock.records.record import Record

SLICE_BYTES = 1 << 20
_TIMEOUT_S = 20.0
_WAIT_MS_MAX = 500  # A broker that waits for new records holds up one of the few connections.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSlice:
    """Some records, and where to go on."""

    records: list[Record]
    next_offset: int
    end_offset: int  # Where the partition ended.


def read_slice(
    admin: Admin, at: TopicPartition, offset: int, *, records_max: int, wait_ms: int = 0
) -> ReadSlice:
    """The next records, maybe none; OffsetGone if the partition has no such offset."""
    fetcher = PartitionFetcher(
        admin.cluster,
        at,
        read_committed=True,
        fetch_bytes=SLICE_BYTES,
        max_wait_ms=min(wait_ms, _WAIT_MS_MAX),
        timeout_s=_TIMEOUT_S,
    )
    try:
        fetched = fetcher.fetch(offset)
    except TopicGone:
        raise UnknownTopicOrPartition(f"Partition {at} does not exist.") from None
    finally:
        fetcher.close()
    found: list[Record] = []
    for header, records in committed_records(fetched):
        found += [record for record in records if record.offset >= offset]
        if len(found) >= records_max:
            cut = found[:records_max]
            return ReadSlice(
                records=cut, next_offset=cut[-1].offset + 1, end_offset=fetched.last_stable
            )
        offset = max(offset, header.next_offset)
    return ReadSlice(records=found, next_offset=offset, end_offset=fetched.last_stable)


def find_offset(admin: Admin, at: TopicPartition, time: int) -> int:
    """The offset at a time in ms or an OffsetSpec; the end, where no record is that late."""
    found = admin.list_offsets({at: time}, read_committed=True)[at]
    if isinstance(found, ProtocolError):
        raise found
    if found is None:
        return find_offset(admin, at, int(OffsetSpec.LATEST)) if time >= 0 else 0
    return found.offset
