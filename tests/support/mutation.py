"""Frames nobody should send: random bytes, and good requests with something wrong in them.

All chance comes from one seed, so a frame that did harm can be made again.
"""

import random
import struct
from collections.abc import Callable, Sequence

EDGES = (0, 1, -1, -2, 0x7F, 0x7FFF, 0x7FFFFFFF, -0x80000000, 0x00FFFFFF, 0x10000000)


class Mutator:
    """Makes wrong frames out of right ones."""

    def __init__(self, seed: int, good: Sequence[bytes]) -> None:
        self.chance = random.Random(seed)
        self.good = good
        self.ways: Sequence[Callable[[bytearray], bytes]] = [
            self.flip,
            self.flip,
            self.overwrite_number,
            self.overwrite_number,
            self.cut,
            self.repeat,
            self.insert,
            self.splice,
            self.another_api,
            self.wrong_length,
            self.noise,
        ]

    def frame(self) -> bytes:
        """The next wrong frame; a few of them come out right."""
        payload = bytearray(self.chance.choice(self.good)[4:])
        way = self.chance.choice(self.ways)
        return way(payload)

    def framed(self, payload: bytes | bytearray) -> bytes:
        """The payload behind its true length."""
        return struct.pack(">i", len(payload)) + payload

    def flip(self, payload: bytearray) -> bytes:
        """Some bits turned over."""
        for _ in range(self.chance.randrange(1, 9)):
            payload[self.chance.randrange(len(payload))] ^= 1 << self.chance.randrange(8)
        return self.framed(payload)

    def overwrite_number(self, payload: bytearray) -> bytes:
        """A count, length or id behind the header replaced by an edge."""
        kind = self.chance.choice([">b", ">h", ">i", ">q"])
        size = struct.calcsize(kind)
        if len(payload) > 8 + size:
            at = self.chance.randrange(8, len(payload) - size)
            bits = 8 * size
            value = self.chance.choice(EDGES) & (2**bits - 1)
            payload[at : at + size] = value.to_bytes(size, "big")
        return self.framed(payload)

    def cut(self, payload: bytearray) -> bytes:
        """The end missing, with a length that does or does not own up to it."""
        cut = payload[: self.chance.randrange(len(payload))]
        if self.chance.random() < 0.7:
            return self.framed(cut)
        return struct.pack(">i", len(payload)) + cut

    def repeat(self, payload: bytearray) -> bytes:
        """A stretch in it twice or many times."""
        start = self.chance.randrange(len(payload))
        piece = payload[start : start + self.chance.randrange(1, 64)]
        times = self.chance.choice([1, 2, 50])
        return self.framed(payload[:start] + piece * times + payload[start:])

    def insert(self, payload: bytearray) -> bytes:
        """Random bytes somewhere."""
        at = self.chance.randrange(len(payload) + 1)
        noise = self.chance.randbytes(self.chance.randrange(1, 32))
        return self.framed(payload[:at] + noise + payload[at:])

    def splice(self, payload: bytearray) -> bytes:
        """The front of one request and the back of another."""
        other = self.chance.choice(self.good)[4:]
        front = payload[: self.chance.randrange(len(payload))]
        return self.framed(front + other[self.chance.randrange(len(other)) :])

    def another_api(self, payload: bytearray) -> bytes:
        """The same body under another API or version."""
        key = self.chance.choice([*range(-1, 95), 0x7FFF, -0x8000])
        version = self.chance.choice([*range(-1, 20), 0x7FFF])
        payload[:4] = struct.pack(">hh", key, version)
        return self.framed(payload)

    def wrong_length(self, payload: bytearray) -> bytes:
        """A length that is not the payload's."""
        lengths = (*EDGES, len(payload) - 1, len(payload) + 1, 104_857_600, 104_857_601)
        return struct.pack(">I", self.chance.choice(lengths) & 0xFFFFFFFF) + payload

    def noise(self, _payload: bytearray) -> bytes:
        """Nothing but random bytes, with or without a true length."""
        noise = self.chance.randbytes(self.chance.choice([0, 1, 7, 8, 20, 300, 5000]))
        return noise if self.chance.random() < 0.3 else self.framed(noise)
