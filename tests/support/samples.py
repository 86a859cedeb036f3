"""Records every client is asked to send and to find again, and what must then be true of them."""

import time
from dataclasses import dataclass

from tests.support.batches import stored_batches
from tests.support.wire import RawConnection

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COUNT = 40
STEP_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One record as a client sends it."""

    key: str
    value: str
    timestamp_ms: int


def samples(count: int = COUNT) -> list[Sample]:
    """Records a second apart, of an hour ago: old enough to be chosen, too young for retention."""
    start_ms = (int(time.time()) - 3600) * 1000
    return [
        Sample(
            key=f"key-{i % 5}",
            value=f"value {i} " + "péage " * (i + 1),
            timestamp_ms=start_ms + i * STEP_MS,
        )
        for i in range(count)
    ]


def stored_codec(port: int, topic: str) -> str:
    """The codec of the first batch as it stands in the log."""
    with RawConnection(port) as connection:
        answer = connection.fetch(topic, 0)
    first = next(stored_batches(answer.records))
    assert first.crc_is_right
    return CODECS[first.attributes & 7]
