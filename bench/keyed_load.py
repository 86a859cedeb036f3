"""A load of keyed records for compacted topics: `python -m bench.keyed_load ...`.

Record `n` has the key `n * step % keys`. With a step that shares no factor with the number of keys
the first `keys` records have each key once, in an order that no cache likes. Like bench.load it
sends prebuilt bytes; only keys and checksums are put in anew.
"""

import argparse
import json
import struct
import time
from collections.abc import Iterator
from dataclasses import asdict

from crc32c import crc32c
from tests.support.batches import batch, record
from tests.support.wire import PRODUCE, produce_body, request

from bench.load import PRODUCE_VERSION, Measured, Shape, Stopwatch, check, connect
from bench.load import read_exactly as read_answer

RECORD_BYTES = 1_000
RECORDS_PER_BATCH = 16  # About the 16 KB that producers gather by default.
STEP = 7_919
KEY = b"key-%012d"
_CRC_AT, _CRC_FROM = 17, 21


def frames(topic: str, *, record_count: int, keys: int) -> Iterator[memoryview]:
    """Produce requests of one batch each; the bytes are the same ones, changed in place."""
    value = bytes(i * 31 % 251 for i in range(RECORD_BYTES - len(KEY % 0)))
    names = [KEY % number for number in range(RECORDS_PER_BATCH)]
    packed = b"".join(record(i, value, key=name) for i, name in enumerate(names))
    whole = batch(names, records=packed, timestamp=int(time.time() * 1000))
    frame = bytearray(request(PRODUCE, PRODUCE_VERSION, produce_body({(topic, 0): whole})))
    start = frame.index(whole)
    end = start + len(whole)
    places = [frame.index(name, start) for name in names]
    view = memoryview(frame)
    for first in range(0, record_count, RECORDS_PER_BATCH):
        for number, place in enumerate(places):
            frame[place : place + len(names[0])] = KEY % ((first + number) * STEP % keys)
        struct.pack_into(">I", frame, start + _CRC_AT, crc32c(view[start + _CRC_FROM : end]))
        yield view


def produce(port: int, topic: str, *, total_bytes: int, keys: int, in_flight: int) -> Measured:
    """Write so many bytes, a few requests in flight."""
    shape = Shape(topic=topic, partitions=1, batch_bytes=0, record_bytes=0)
    answer = bytearray(shape.produce_answer_bytes())
    error_at = shape.produce_error_at()
    record_count = total_bytes // RECORD_BYTES
    connection = connect(port)
    watch = Stopwatch()
    sent = done = moved = 0

    def settle() -> None:
        read_answer(connection, memoryview(answer))
        check(answer, error_at)

    for frame in frames(topic, record_count=record_count, keys=keys):
        if sent - done >= in_flight:
            settle()
            done += 1
        connection.sendall(frame)
        sent += 1
        moved += len(frame)
    while done < sent:
        settle()
        done += 1
    return watch.measured(
        moved_bytes=moved,
        requests=sent,
    )


def main() -> None:
    """Run the load and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--total-bytes", type=int, required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--in-flight", type=int, default=5)
    options = parser.parse_args()
    measured = produce(
        options.port,
        options.topic,
        total_bytes=options.total_bytes,
        keys=options.keys,
        in_flight=options.in_flight,
    )
    print(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main()
