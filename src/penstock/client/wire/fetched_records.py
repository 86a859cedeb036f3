"""The records in what was fetched: of whole batches, without markers and what was aborted."""

from collections.abc import Iterator

from penstock.client.wire.raw_fetch import Fetched
from penstock.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    check_batch,
    read_header,
    read_records,
)
from penstock.records.control import ControlType, read_marker
from penstock.records.record import Record


def committed_records(fetched: Fetched) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Every whole batch in order; without records where it is a marker or was aborted."""
    aborted = sorted(fetched.aborted, key=lambda one: one[1])
    void: set[int] = set()  # Producers whose transaction here ends with an abort.
    for header, batch in _whole_batches(fetched.records):
        while aborted and aborted[0][1] <= header.base_offset:
            void.add(aborted.pop(0)[0])
        if header.is_control:
            markers = (read_marker(record) for record in read_records(batch))
            if any(one is not None and one.type is ControlType.ABORT for one in markers):
                void.discard(header.producer_id)
            yield header, []
        elif header.is_transactional and header.producer_id in void:
            yield header, []
        else:
            yield header, list(read_records(batch))


def _whole_batches(data: memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    """A fetch may end inside a batch; that one comes again."""
    at = 0
    while at + HEADER_BYTES <= len(data):
        end = at + read_header(data, at).size_bytes
        if end > len(data):
            return
        yield check_batch(data, at), data[at:end]
        at = end
