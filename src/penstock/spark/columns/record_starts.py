"""Where the records of batches begin, and the varints they are made of, for many at once.

Where a record begins only the length of the one before it can tell. A small loop follows them one
after the other; where a fetch has many batches, numpy follows all of these in step.
"""

import numpy as np
import numpy.typing as npt

from penstock.errors import CorruptRecord
from penstock.spark.columns.batch_walk import Span

Ints = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]

_IN_STEP_FROM = 40  # So many batches at a time, and following them in step costs less.


def record_starts(data: memoryview, octets: Octets, spans: list[Span]) -> Ints:
    """The place of each record in the data, whose bytes are also in `octets`."""
    for span in spans:
        if span.record_count > span.end - span.start:
            _raise_unfilled(span)
    counts = np.array([span.record_count for span in spans], np.int64)
    try:
        if counts.sum() >= _IN_STEP_FROM * counts.max():
            return _starts_in_step(octets, spans, counts)
        return np.array(_starts_in_turn(data, spans), np.int64)
    except IndexError:
        raise CorruptRecord("a record reaches beyond its batch") from None


def _starts_in_step(octets: Octets, spans: list[Span], counts: Ints) -> Ints:
    """Where each record begins: the first of all batches, then the second of all, and so on."""
    order = np.argsort(-counts, kind="stable")  # Those that end early drop off the end.
    slot = (np.cumsum(counts) - counts)[order]
    at = np.array([span.start for span in spans], np.int64)[order]
    going = np.searchsorted(-counts[order], -np.arange(counts.max()), side="left")
    starts = np.empty(int(counts.sum()), np.int64)
    for active in going.tolist():
        now, places = at[:active], slot[:active]
        starts[places] = now
        places += 1
        two = octets.take(now + 1, mode="clip").astype(np.uint16)
        two <<= 8
        two |= octets.take(now)
        step = _STEP.take(two)
        if step.min() > 0:
            now += step
        else:
            length, behind = _long_varints(octets, now)
            np.add(behind, length, out=now)
    _check_filled(at != np.array([span.end for span in spans])[order], order, spans)
    return starts


def _check_filled(wrong: npt.NDArray[np.bool_], order: Ints, spans: list[Span]) -> None:
    if wrong.any():
        _raise_unfilled(spans[int(order[np.flatnonzero(wrong)[0]])])


def _raise_unfilled(span: Span) -> None:
    raise CorruptRecord(f"the records of the batch at offset {span.base_offset} do not fill it")


def _starts_in_turn(data: memoryview, spans: list[Span]) -> list[int]:
    """Where each record begins, one after the other: faster for few large batches."""
    octets, shift = _fast_octets(data)
    starts: list[int] = []
    note = starts.append
    for span in spans:
        at = span.start + shift
        for _ in range(span.record_count):
            note(at)
            bits = octets[at]
            if bits < 128:
                at += 1 + (bits >> 1)
                continue
            high = octets[at + 1]
            if high < 128:
                at += 2 + ((high << 7) + bits - 128 >> 1)
            else:
                at = _after_long_length(octets, at)
        if at != span.end + shift:
            _raise_unfilled(span)
    return [at - shift for at in starts] if shift else starts


def _after_long_length(octets: bytes | bytearray | memoryview, at: int) -> int:
    bits = shift = 0
    while True:
        byte = octets[at]
        at += 1
        bits |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return at + (bits >> 1)
        if shift > 28:
            raise CorruptRecord("the length of a record is longer than 5 bytes")


def _fast_octets(data: memoryview) -> tuple[bytes | bytearray | memoryview, int]:
    """The object under the view and where the view begins in it: indexing it costs half."""
    root = data.obj
    if not isinstance(root, bytes | bytearray):
        return data, 0
    return root, _address(data) - _address(memoryview(root))


def _address(data: memoryview) -> int:
    where: int = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    return where


def varints(octets: Octets, at: Ints) -> tuple[Ints, Ints]:
    """The zigzag numbers at these places, and the places behind them."""
    first = octets.take(at)
    if first.max(initial=0) < 128:
        return _VALUE_OF_ONE.take(first), at + 1
    two = octets.take(at + 1, mode="clip").astype(np.uint16)  # Beyond the end only for one byte.
    two <<= 8
    two |= first
    size = _SIZE.take(two)
    if size.min() > 0:
        return _VALUE.take(two), at + size
    return _long_varints(octets, at)


def _long_varints(octets: Octets, at: Ints) -> tuple[Ints, Ints]:
    """Varints of any size; each round looks only at the numbers that go on."""
    bits = octets[at].astype(np.int64)
    behind = at + 1
    rows = np.flatnonzero(bits > 127)
    bits[rows] &= 127
    shift = 7
    while rows.size:
        if shift > 63:
            raise CorruptRecord("a varint is longer than 10 bytes")
        byte = octets[behind[rows]].astype(np.int64)
        bits[rows] |= (byte & 127) << shift
        behind[rows] += 1
        rows = rows[byte > 127]
        shift += 7
    # The topmost bit is no sign yet: the shift must not spread it.
    return (bits >> 1 & _INT64_MAX) ^ -(bits & 1), behind


def _tables() -> tuple[Ints, Ints]:
    """For each two bytes, low one first: the number they begin with, and its size if up to two."""
    two = np.arange(1 << 16)
    low, high = two & 255, two >> 8
    bits = np.where(low < 128, low, (low & 127) | (high & 127) << 7)
    size = np.where(low < 128, 1, np.where(high < 128, 2, 0))
    return (bits >> 1) ^ -(bits & 1), size


_INT64_MAX = (1 << 63) - 1
_VALUE, _SIZE = _tables()
_VALUE_OF_ONE = _VALUE[:128]
_STEP = np.where(_SIZE > 0, _SIZE + _VALUE, 0)  # From one record to the next; 0: not told by two.
