"""Transactions written by librdkafka, and a read of them that discards: one process per run.

`write` runs transactions of a hundred records one after the other, each over three partitions, and
aborts as many as it is told. `read` fetches everything under an isolation level without decoding
any record: it walks the batches for the next offset, as every client must.
"""

import argparse
import json
import struct
from dataclasses import asdict

from tests.support.wire import FETCH, request, string

from bench.load import (
    FETCH_VERSION,
    HOST,
    LoadError,
    Measured,
    Stopwatch,
    connect,
    read_exactly,
)

RECORDS_PER_TRANSACTION = 100
PARTITIONS = 3
_BATCH_START = struct.Struct(">qi")  # Base offset, length of what follows.
_LAST_OFFSET_DELTA_AT = 23
_ABORTED_BYTES = 16
_PARTITION = struct.Struct(">ihqqq")


def write(
    address: str, topic: str, *, transactional_id: str, record_bytes: int, count: int, aborts: int
) -> Measured:
    """Run `count` transactions; with `aborts`, the first and then one in so many is aborted."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            "queue.buffering.max.messages": 100_000,
        }
    )
    value = bytes(i * 31 % 251 for i in range(record_bytes))
    producer.init_transactions(60)
    watch = Stopwatch()
    for number in range(count):
        producer.begin_transaction()
        for place in range(RECORDS_PER_TRANSACTION):
            producer.produce(topic, value, partition=place % PARTITIONS)
        if aborts and number % aborts == 0:
            producer.flush(60)  # Written, so that a reader must skip it.
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    return watch.measured(
        moved_bytes=count * RECORDS_PER_TRANSACTION * record_bytes,
        requests=count,
    )


def read(port: int, topic: str, *, total_bytes: int, committed: bool, ends: list[int]) -> Measured:
    """Fetch all partitions from offset 0 to their ends, again and again."""
    offsets = [0] * len(ends)
    connection = connect(port)
    moved = requests = aborted = 0
    size = memoryview(bytearray(4))
    scratch = memoryview(bytearray(PARTITIONS * 2_000_000))
    watch = Stopwatch()
    while moved < total_bytes:
        connection.sendall(request(FETCH, FETCH_VERSION, body_for(topic, offsets, committed)))
        read_exactly(connection, size)
        (length,) = struct.unpack(">i", size)
        answer = scratch[:length]
        read_exactly(connection, answer)
        requests += 1
        got, skipped = take(answer, len(topic), offsets)
        moved += got
        aborted += skipped
        if not got:
            raise LoadError(f"nothing came at {offsets} of {ends}")
        for index, end in enumerate(ends):
            if offsets[index] >= end:
                offsets[index] = 0
    if committed and not aborted:
        raise LoadError("a topic with aborted transactions answered without naming any")
    return watch.measured(
        moved_bytes=moved,
        requests=requests,
    )


def body_for(topic: str, offsets: list[int], committed: bool) -> bytes:
    """Fetch version 11 of all partitions, up to 1 MB of each."""
    parts = [struct.pack(">iiiibiii", -1, 1000, 1, 52_428_800, committed, 0, -1, 1)]
    parts += [string(topic), struct.pack(">i", len(offsets))]
    for partition, offset in enumerate(offsets):
        parts.append(struct.pack(">iiqqi", partition, -1, offset, -1, 1_048_576))
    return b"".join([*parts, struct.pack(">i", 0), string("")])


def take(answer: memoryview, topic_bytes: int, offsets: list[int]) -> tuple[int, int]:
    """Bytes of records, and aborted transactions, in an answer; moves the offsets on."""
    at = 4 + 4 + 2 + 4 + 4 + 2 + topic_bytes + 4
    moved = aborted = 0
    for _ in offsets:
        index, code, _, _, _ = _PARTITION.unpack_from(answer, at)
        if code:
            raise LoadError(f"Fetch answered error {code}")
        at += _PARTITION.size
        (count,) = struct.unpack_from(">i", answer, at)
        aborted += max(count, 0)
        at += 4 + max(count, 0) * _ABORTED_BYTES + 4
        (size,) = struct.unpack_from(">i", answer, at)
        at += 4
        offsets[index] = next_offset(answer[at : at + max(size, 0)], offsets[index])
        at += max(size, 0)
        moved += max(size, 0)
    return moved, aborted


def next_offset(records: memoryview, offset: int) -> int:
    """The offset behind the last whole batch."""
    at = 0
    while len(records) - at > _LAST_OFFSET_DELTA_AT + 4:
        base, length = _BATCH_START.unpack_from(records, at)
        if at + _BATCH_START.size + length > len(records):
            break
        (delta,) = struct.unpack_from(">i", records, at + _LAST_OFFSET_DELTA_AT)
        offset = base + delta + 1
        at += _BATCH_START.size + length
    return offset


def main() -> None:
    """Run one load and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=["write", "read"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--record-bytes", type=int, default=1024)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--aborts", type=int, default=0, help="abort one in so many; 0: none")
    parser.add_argument("--total-bytes", type=int, default=0)
    parser.add_argument("--committed", action="store_true")
    parser.add_argument("--ends", default="", help="the end offset of each partition")
    options = parser.parse_args()
    if options.work == "write":
        measured = write(
            f"{HOST}:{options.port}",
            options.topic,
            transactional_id=f"bench-{options.topic}",
            record_bytes=options.record_bytes,
            count=options.count,
            aborts=options.aborts,
        )
    else:
        measured = read(
            options.port,
            options.topic,
            total_bytes=options.total_bytes,
            committed=options.committed,
            ends=[int(end) for end in options.ends.split(",")],
        )
    print(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main()
