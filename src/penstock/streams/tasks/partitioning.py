"""Which partition a windowed key goes to: that of the key alone, so that its windows lie together.

Other keys are spread where records are written. This is Kafka's murmur2, for one key at a time.
"""

from penstock.streams.values.serdes import Serde

_MASK = 0xFFFFFFFF
_MIX = 0x5BD1E995
_WINDOW_BYTES = {"time-windowed": 8, "session-windowed": 16}


def is_windowed(serde: Serde[object]) -> bool:
    """Whether keys of the serde are windowed."""
    return serde.name in _WINDOW_BYTES


def windowed_partition(serde: Serde[object], key: bytes | None, count: int | None) -> int | None:
    """The partition of a windowed key; None: the key is not windowed, or its topic not known."""
    size = _WINDOW_BYTES.get(serde.name)
    if size is None or key is None or not count:
        return None
    return (murmur2(key[:-size]) & 0x7FFFFFFF) % count


def murmur2(key: bytes) -> int:
    """Kafka's hash of a key."""
    hashed = 0x9747B28C ^ len(key)
    whole = len(key) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * _MIX & _MASK
        word = (word ^ word >> 24) * _MIX & _MASK
        hashed = hashed * _MIX & _MASK ^ word
    if len(key) > whole:
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * _MIX & _MASK
    hashed = (hashed ^ hashed >> 13) * _MIX & _MASK
    return hashed ^ hashed >> 15
