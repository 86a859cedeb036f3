"""Records, batches and damage that several tests of this folder draw from."""

import random
from collections.abc import Iterator

from hypothesis import strategies as st

from penstock.records.batch import Record
from penstock.records.compression import Codec

LEGACY_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
MIB = 1024 * 1024

optional_bytes = st.none() | st.binary(max_size=200)
timestamps = st.integers(0, 1 << 42)
headers = st.lists(st.tuples(st.text(max_size=10), optional_bytes), max_size=4).map(tuple)


@st.composite
def record_lists(
    draw: st.DrawFn, *, base_offset: int = 0, with_headers: bool = True
) -> list[Record]:
    """Records at ascending offsets with gaps, as compaction leaves them."""
    count = draw(st.integers(1, 12))
    gaps = draw(st.lists(st.integers(0, 300), min_size=count, max_size=count))
    records, offset = [], base_offset
    for gap in gaps:
        offset += gap
        own_headers = draw(headers) if with_headers else ()
        records.append(
            Record(
                offset, draw(timestamps), draw(optional_bytes), draw(optional_bytes), own_headers
            )
        )
        offset += 1
    return records


def some_records(count: int = 5, *, value: bytes = b"value " * 20) -> list[Record]:
    """Consecutive records as a producer sends them."""
    return [
        Record(i, 1_700_000_000_000 + i, b"key %d" % i, value, (("trace", b"%d" % i),))
        for i in range(count)
    ]


def mutations(data: bytes, *, count: int, seed: int) -> Iterator[bytearray]:
    """The data with a few bytes changed, cut out or put in; the same ones for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(damaged) + 1)
            cut = chance.choice((0, 0, 1, 1, 1, 4))
            put = chance.randbytes(chance.choice((0, 1, 1, 1, 2, 8)))
            damaged[at : at + cut] = put
        yield damaged
