"""A map of bytes to bytes as Java's serialisation writes a `java.util.HashMap<byte[], byte[]>`.

That is the file in which Apache's standalone worker keeps offsets (`offset.storage.file.filename`).
Only this one shape is written and read; everything else in a file is refused.
"""

import struct
from collections.abc import Mapping

from penstock.connect.store.json_text import DamagedEntry

_STREAM = b"\xac\xed\x00\x05"
_OBJECT, _CLASS, _REFERENCE, _NULL, _ARRAY = b"s", b"r", b"q", b"p", b"u"
_BLOCK, _BLOCK_END = b"w", b"x"
_MAP_CLASS = (
    _CLASS
    + b"\x00\x11java.util.HashMap"
    + bytes.fromhex("0507dac1c31660d1")  # Its serial version.
    + b"\x03\x00\x02"
    + b"F\x00\x0aloadFactor"
    + b"I\x00\x09threshold"
    + _BLOCK_END
    + _NULL
)
_BYTES_CLASS = (
    _CLASS
    + b"\x00\x02[B"
    + bytes.fromhex("acf317f8060854e0")
    + b"\x02\x00\x00"
    + _BLOCK_END
    + _NULL
)
# Handles are given in the order in which things are written: the map's class, the map, this class.
_BYTES_AGAIN = _REFERENCE + b"\x00\x7e\x00\x02"
_LOAD_FACTOR = 0.75
_BUCKETS_MIN = 16


def encode_map(entries: Mapping[bytes, bytes | None]) -> bytes:
    """The file's content."""
    buckets = _BUCKETS_MIN
    while buckets * _LOAD_FACTOR < len(entries):
        buckets *= 2
    sizes = struct.pack(">ii", buckets, len(entries))
    parts = [_STREAM, _OBJECT, _MAP_CLASS, struct.pack(">fi", 0.75, int(buckets * _LOAD_FACTOR))]
    parts += [_BLOCK, bytes([len(sizes)]), sizes]
    described = False
    for one in (item for pair in entries.items() for item in pair):
        if one is None:
            parts.append(_NULL)
            continue
        parts += [_ARRAY, _BYTES_AGAIN if described else _BYTES_CLASS]
        parts += [struct.pack(">i", len(one)), one]
        described = True
    return b"".join([*parts, _BLOCK_END])


def decode_map(content: bytes) -> dict[bytes, bytes | None]:
    """The map; DamagedEntry if the content is anything else."""
    reader = _Reader(content)
    reader.expect(_STREAM + _OBJECT + _MAP_CLASS)
    reader.take(8)
    reader.expect(_BLOCK + b"\x08")
    _, size = struct.unpack(">ii", reader.take(8))
    found: dict[bytes, bytes | None] = {}
    for _ in range(max(0, size)):
        key = reader.item()
        if key is None:
            raise DamagedEntry("the file has a null as a key")
        found[key] = reader.item()
    reader.expect(_BLOCK_END)
    return found


class _Reader:
    """A place in the content; nothing is taken that is not there."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._content):
            raise DamagedEntry("the file ends in the middle of an entry")
        self._at += size
        return self._content[self._at - size : self._at]

    def expect(self, wanted: bytes) -> None:
        if self.take(len(wanted)) != wanted:
            raise DamagedEntry("the file is no map of offsets that Java has written")

    def item(self) -> bytes | None:
        kind = self.take(1)
        if kind == _NULL:
            return None
        if kind != _ARRAY:
            raise DamagedEntry("the file has something else than bytes in its map")
        if self._content.startswith(_BYTES_CLASS, self._at):
            self.take(len(_BYTES_CLASS))
        else:
            self.expect(_BYTES_AGAIN)
        return self.take(struct.unpack(">i", self.take(4))[0])
