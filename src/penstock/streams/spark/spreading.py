"""Which of Spark's tasks gets which of ours: group numbers that spread evenly.

Spark hashes what it groups by, and the hashes of 0 and 1 may well fall into one place. So each task
goes by a number whose hash is known to fall where it is wanted. The numbers are part of the state
in a checkpoint: this must never change.
"""

_MASK = 0xFFFFFFFF
_SEED = 42


def group_numbers(tasks: int, places: int) -> list[int]:
    """A number for each task, such that task t falls into place t modulo `places`."""
    found: list[int] = []
    candidate = 0
    for task in range(tasks):
        while place_of(candidate, places) != task % places:
            candidate += 1
        found.append(candidate)
        candidate += 1
    return found


def place_of(number: int, places: int) -> int:
    """Where Spark puts rows that are grouped by an integer: its Murmur3, modulo."""
    hashed = _murmur3(number)
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return signed % places


def _murmur3(number: int) -> int:
    word = _rotated(number * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    hashed = (_rotated(_SEED ^ word, 13) * 5 + 0xE6546B64) & _MASK
    hashed ^= 4  # The bytes of an integer.
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _MASK
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _MASK
    return hashed ^ hashed >> 16


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _MASK
