"""How many different values there were, in bounded space: HyperLogLog.

A sketch is bytes. Up to EXACT_MAX values it is their hashes, sorted, and the answer is exact; then
it is one register for each of 4096 groups of hashes, with a standard error of 1.6 %.
"""

import hashlib
import math
from typing import Any, Final

EXACT_MAX: Final = 511  # 512 hashes would be as long as the registers.
_HASH_BYTES: Final = 8
_INDEX_BITS: Final = 12
_REGISTERS: Final = 1 << _INDEX_BITS
_REST_BITS: Final = 64 - _INDEX_BITS
# The bias of the estimate, from the paper of Flajolet and others.
_ALPHA: Final = 0.7213 / (1 + 1.079 / _REGISTERS)


def add_to_sketch(sketch: bytes, value: Any) -> bytes:
    """The sketch with one value more, or the same if it was there."""
    found = _hash(value)
    if len(sketch) == _REGISTERS:
        return _raised(sketch, [found])
    hashes = _hashes(sketch)
    return sketch if found in hashes else _sketch_of(hashes | {found})


def merge_sketches(left: bytes, right: bytes) -> bytes:
    """The sketch of all values of both."""
    if len(left) != _REGISTERS and len(right) != _REGISTERS:
        return _sketch_of(_hashes(left) | _hashes(right))
    if len(left) != _REGISTERS:
        left, right = right, left
    if len(right) != _REGISTERS:
        return _raised(left, _hashes(right))
    return bytes(max(one, two) for one, two in zip(left, right, strict=True))


def sketch_size(sketch: bytes) -> int:
    """How many different values were added."""
    if len(sketch) != _REGISTERS:
        return len(sketch) // _HASH_BYTES
    estimate = _ALPHA * _REGISTERS**2 / sum(2.0**-register for register in sketch)
    if estimate <= 2.5 * _REGISTERS and (empty := sketch.count(0)):
        estimate = _REGISTERS * math.log(_REGISTERS / empty)
    return round(estimate)


def _hash(value: Any) -> int:
    text = f"{type(value).__name__}:{value!r}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=_HASH_BYTES).digest(), "big")


def _hashes(sketch: bytes) -> set[int]:
    starts = range(0, len(sketch), _HASH_BYTES)
    return {int.from_bytes(sketch[at : at + _HASH_BYTES], "big") for at in starts}


def _sketch_of(hashes: set[int]) -> bytes:
    if len(hashes) > EXACT_MAX:
        return _raised(bytes(_REGISTERS), hashes)
    return b"".join(one.to_bytes(_HASH_BYTES, "big") for one in sorted(hashes))


def _raised(registers: bytes, hashes: Any) -> bytes:
    raised = bytearray(registers)
    for one in hashes:
        index, rest = one >> _REST_BITS, one & ((1 << _REST_BITS) - 1)
        raised[index] = max(raised[index], _REST_BITS - rest.bit_length() + 1)
    return bytes(raised)
