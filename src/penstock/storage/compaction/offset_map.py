"""The newest offset of every key, in memory of a fixed size: what compaction decides by.

An entry takes 24 bytes, as with Apache Kafka: 16 for a digest that stands for the key, 8 for the
offset. Digests are keyed hashes of 128 bits: with ten million keys two of them are taken for one
with a probability of 10^-25.

A dict of Python objects would take eight times as much, so entries lie in plain byte arrays. Native
code has a table in one (`NativeMap`); where it was not built, the entries are divided into buckets
(`BucketMap`).
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from struct import Struct
from typing import Final

from penstock.native import NATIVE, NativeModule

ENTRY_BYTES: Final = 24
NOT_FOUND: Final = -1

_DIGEST_BYTES: Final = 16
_BUCKET_ENTRIES: Final = 32
_BUCKET_BYTES: Final = _BUCKET_ENTRIES * ENTRY_BYTES
_BUCKET_WORDS: Final = _BUCKET_BYTES // 8
_FIRST_OFFSET: Final = _BUCKET_ENTRIES * _DIGEST_BYTES // 8  # In a bucket, behind its digests.
_HINTS_MAX: Final = 8 << 20  # A power of two.
_digest: Final = Struct("qq").pack
_MORE: Final = b"\1"


class OffsetMap(ABC):
    """At most `entries_max` keys."""

    __slots__ = ("entries_max", "size")

    def __init__(self, slots: int, load_factor: float) -> None:
        self.entries_max = max(1, min(int(slots * load_factor), slots - 1))
        self.size = 0

    @property
    def room(self) -> int:
        """How many new keys still fit."""
        return self.entries_max - self.size

    @property
    def used_bytes(self) -> int:
        """What the keys take of the buffer."""
        return self.size * ENTRY_BYTES

    @abstractmethod
    def put(self, keys: Sequence[bytes], offsets: Sequence[int]) -> list[int]:
        """Note where the keys, no more than there is room for, were seen last.

        Offsets only grow from one call to the next. Returns the offsets that are replaced.
        """

    @abstractmethod
    def newest(self, keys: Sequence[bytes]) -> list[int]:
        """The newest offset of each key; NOT_FOUND where there is none."""


def offset_map(
    *, buffer_bytes: int, load_factor: float = 0.9, native: NativeModule | None = NATIVE
) -> OffsetMap:
    """An empty map within a buffer of a size, the fastest that can be had here."""
    if native is None:
        return BucketMap(buffer_bytes, load_factor)
    return NativeMap(buffer_bytes, load_factor, native)


class NativeMap(OffsetMap):
    """A table of native code; its digests are of a key of their own."""

    __slots__ = ("_memory", "_native", "_seed")

    def __init__(self, buffer_bytes: int, load_factor: float, native: NativeModule) -> None:
        slots = max(2, buffer_bytes // ENTRY_BYTES)
        super().__init__(slots, load_factor)
        self._memory = bytearray(slots * ENTRY_BYTES)
        self._seed = os.urandom(16)
        self._native = native

    def put(self, keys: Sequence[bytes], offsets: Sequence[int]) -> list[int]:
        replaced = self._native.map_put(self._memory, self._seed, keys, offsets)
        self.size += len(keys) - len(replaced)
        return replaced

    def newest(self, keys: Sequence[bytes]) -> list[int]:
        return self._native.map_newest(self._memory, self._seed, keys)


class BucketMap(OffsetMap):
    """Buckets small enough that `bytearray.find`, which runs in C, looks through one in less time
    than a few steps of the interpreter take. A full bucket passes on to the next.

    The digest is the interpreter's own keyed hash, of the key and of the key with one byte more.
    """

    __slots__ = ("_buckets", "_counts", "_hints", "_words")

    def __init__(self, buffer_bytes: int, load_factor: float) -> None:
        bucket_count = max(1, buffer_bytes // _BUCKET_BYTES)
        slots = bucket_count * _BUCKET_ENTRIES
        super().__init__(slots, load_factor)
        self._buckets = bytearray(bucket_count * _BUCKET_BYTES)
        self._words = memoryview(self._buckets).cast("q")
        self._counts = bytearray(bucket_count)
        # One byte for many keys; zero: none of them is here, as most keys asked for are not.
        self._hints = bytearray(min(_HINTS_MAX, 1 << (4 * slots).bit_length()))

    def put(self, keys: Sequence[bytes], offsets: Sequence[int]) -> list[int]:
        buckets, words, counts = self._buckets, self._words, self._counts
        bucket_count, find = len(counts), buckets.find
        hints, hint_bits = self._hints, len(self._hints) - 1
        replaced = []
        for key, offset in zip(keys, offsets, strict=True):
            number = hash(key)
            digest = _digest(number, hash(key + _MORE))
            bucket = number % bucket_count
            start = bucket * _BUCKET_BYTES
            count = counts[bucket]
            hint = number & hint_bits
            # Found between two digests is as unlikely as two keys with one digest.
            at = find(digest, start, start + count * _DIGEST_BYTES) if hints[hint] else -1
            hints[hint] = 1
            while at < 0 and count == _BUCKET_ENTRIES:
                bucket = (bucket + 1) % bucket_count
                start = bucket * _BUCKET_BYTES
                count = counts[bucket]
                at = find(digest, start, start + count * _DIGEST_BYTES)
            if at < 0:
                at = start + count * _DIGEST_BYTES
                buckets[at : at + _DIGEST_BYTES] = digest
                words[bucket * _BUCKET_WORDS + _FIRST_OFFSET + count] = offset
                counts[bucket] = count + 1
            else:
                at = bucket * _BUCKET_WORDS + _FIRST_OFFSET + (at - start) // _DIGEST_BYTES
                replaced.append(words[at])
                words[at] = offset
        self.size += len(keys) - len(replaced)
        return replaced

    def newest(self, keys: Sequence[bytes]) -> list[int]:
        words, counts = self._words, self._counts
        bucket_count, find = len(counts), self._buckets.find
        hints, hint_bits = self._hints, len(self._hints) - 1
        found = []
        for key in keys:
            number = hash(key)
            if not hints[number & hint_bits]:
                found.append(NOT_FOUND)
                continue
            digest = _digest(number, hash(key + _MORE))
            bucket = number % bucket_count
            start = bucket * _BUCKET_BYTES
            count = counts[bucket]
            at = find(digest, start, start + count * _DIGEST_BYTES)
            while at < 0 and count == _BUCKET_ENTRIES:
                bucket = (bucket + 1) % bucket_count
                start = bucket * _BUCKET_BYTES
                count = counts[bucket]
                at = find(digest, start, start + count * _DIGEST_BYTES)
            if at < 0:
                found.append(NOT_FOUND)
            else:
                at = bucket * _BUCKET_WORDS + _FIRST_OFFSET + (at - start) // _DIGEST_BYTES
                found.append(words[at])
        return found
