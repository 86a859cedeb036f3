"""Which partition each row goes to, all rows at once: Kafka's own rules in numpy.

A partition that the row names stands. A key is hashed with murmur2, as every Kafka client does,
so that one key is always in one partition. Rows without either stick to one partition until about
a batch is full, then go on to another: full batches are what makes a broker fast.
"""

import random
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import InvalidRecord
from penstock.spark.columns.encode import Ints, lengths

_SEED = np.uint32(0x9747B28C)
_MIX = np.uint32(0x5BD1E995)


def murmur2(keys: Any) -> NDArray[np.uint32]:
    """Kafka's hash of each key; what stands for a NULL has no meaning."""
    sizes = lengths(keys)
    ends = np.frombuffer(keys.buffers()[1], dtype=np.int32)
    starts: Ints = ends[keys.offset : keys.offset + len(keys)].astype(np.int64)
    held = keys.buffers()[2]
    data = np.frombuffer(held, dtype=np.uint8) if held is not None else np.zeros(0, np.uint8)
    data = np.concatenate((data, np.zeros(4, np.uint8)))  # The last word may reach over the end.
    hashed: NDArray[np.uint32] = _SEED ^ sizes.astype(np.uint32)
    words = sizes >> 2
    for at in range(int(words.max(initial=0))):
        rows = np.flatnonzero(words > at)
        word = _word(data, starts[rows] + 4 * at)
        word *= _MIX
        word ^= word >> np.uint32(24)
        word *= _MIX
        hashed[rows] = hashed[rows] * _MIX ^ word
    _mix_rest(hashed, data, starts + 4 * words, sizes & 3)
    hashed ^= hashed >> np.uint32(13)
    hashed *= _MIX
    hashed ^= hashed >> np.uint32(15)
    return hashed


def _word(data: NDArray[np.uint8], at: Ints) -> NDArray[np.uint32]:
    word: NDArray[np.uint32] = data[at].astype(np.uint32)
    for place in (1, 2, 3):
        word |= data[at + place].astype(np.uint32) << np.uint32(8 * place)
    return word


def _mix_rest(hashed: NDArray[np.uint32], data: NDArray[np.uint8], at: Ints, rest: Ints) -> None:
    """The one to three bytes behind the last whole word."""
    rows = np.flatnonzero(rest)
    word = _word(data, at[rows]) & ((np.uint32(1) << (8 * rest[rows]).astype(np.uint32)) - 1)
    hashed[rows] = (hashed[rows] ^ word) * _MIX


class RowPartitioner:
    """Chooses partitions for the rows of one task; knows where it stuck last."""

    def __init__(self, *, batch_bytes: int, ignore_keys: bool, round_robin: bool) -> None:
        self._batch_bytes = batch_bytes
        self._ignore_keys = ignore_keys
        self._round_robin = round_robin
        self._turn: dict[str, int] = {}

    def choose(
        self, topic: str, count: int, *, keys: Any, given: Any | None, row_bytes: Ints
    ) -> Ints:
        """A partition below `count` for each row."""
        if self._round_robin:
            chosen = self._in_turn(topic, count, np.arange(len(row_bytes)))
        else:
            chosen = self._by_key(topic, count, keys, row_bytes)
        return chosen if given is None else _given(given, chosen, count)

    def _by_key(self, topic: str, count: int, keys: Any, row_bytes: Ints) -> Ints:
        is_free = np.asarray(keys.is_null())
        if self._ignore_keys:
            is_free = np.ones(len(row_bytes), dtype=np.bool_)
        if is_free.all():
            return self._sticking(topic, count, row_bytes)
        chosen: Ints = (murmur2(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64) % count
        if is_free.any():
            chosen[is_free] = self._sticking(topic, count, row_bytes[is_free])
        return chosen

    def _sticking(self, topic: str, count: int, row_bytes: Ints) -> Ints:
        return self._in_turn(topic, count, np.cumsum(row_bytes) // self._batch_bytes)

    def _in_turn(self, topic: str, count: int, steps: Ints) -> Ints:
        # Tasks begin at random places: many of them together load all partitions alike.
        start = self._turn.get(topic)
        if start is None:
            start = random.randrange(count)
        self._turn[topic] = (start + int(steps[-1]) + 1) % count
        return (start + steps) % count


def _given(given: Any, chosen: Ints, count: int) -> Ints:
    is_given = np.asarray(given.is_valid())
    wanted = np.asarray(given.fill_null(0)).astype(np.int64)
    wrong = is_given & ((wanted < 0) | (wanted >= count))
    if wrong.any():
        number = int(wanted[wrong][0])
        raise InvalidRecord(
            f"Invalid partition given with record: {number} is not in the range [0...{count})."
        )
    return np.where(is_given, wanted, chosen)


def as_binary(column: Any) -> Any:
    """A string or binary column as bytes; strings are UTF-8 already, so nothing is copied."""
    return column if column.type == pa.binary() else column.cast(pa.binary())
