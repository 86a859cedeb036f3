"""The load generator: a client of prebuilt bytes that costs as little as a client can.

It runs in a process of its own (`python -m bench.load ...`), sends requests that were packed before
the clock starts, keeps a fixed number in flight, checks each answer's error code where it stands,
and prints one line of JSON. The same generator drives Penstock, Apache Kafka and the raw limit, so
what it costs is the same in every figure.
"""

import argparse
import json
import resource
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from tests.support.batches import batch, record
from tests.support.wire import FETCH, PRODUCE, fetch_body, produce_body, request

HOST = "127.0.0.1"
PRODUCE_VERSION, FETCH_VERSION = 7, 11
SCRATCH_BYTES = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run of load: what moved, how long it took, what the client itself used."""

    bytes: int
    requests: int
    seconds: float
    client_cpu_s: float
    round_trips_us: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is sent: batches of equal size, over so many partitions of one topic."""

    topic: str
    partitions: int
    batch_bytes: int  # The most a batch may take; it is filled with whole records.
    record_bytes: int
    schema_id: int | None = None  # In front of every value; None: values have no schema.

    def records_per_batch(self) -> int:
        """How many records of this size fill a batch."""
        overhead, one = 61, len(record(70_000, bytes(self.record_bytes)))
        return max(1, (self.batch_bytes - overhead) // one)

    def batch(self) -> bytes:
        """The batch, built once; brokers give it its offsets."""
        value = bytes(i * 31 % 251 for i in range(self.record_bytes))
        if self.schema_id is not None:
            value = b"\0" + self.schema_id.to_bytes(4, "big") + value[5:]
        return batch([value] * self.records_per_batch(), timestamp=int(time.time() * 1000))

    def produce_frames(self) -> list[bytes]:
        """One request per partition, each with one batch."""
        body = self.batch()
        return [
            request(PRODUCE, PRODUCE_VERSION, produce_body({(self.topic, partition): body}))
            for partition in range(self.partitions)
        ]

    def produce_answer_bytes(self) -> int:
        """The size of the answer to one of these requests, with its length."""
        return 4 + 4 + 4 + (2 + len(self.topic)) + 4 + (4 + 2 + 8 + 8 + 8) + 4

    def produce_error_at(self) -> int:
        """Where the answer carries the partition's error code."""
        return 4 + 4 + 4 + (2 + len(self.topic)) + 4 + 4

    def fetch_frame(self, offsets: list[int], partition_bytes: int) -> bytes:
        """A fetch of every partition from its offset."""
        wanted = {(self.topic, partition): at for partition, at in enumerate(offsets)}
        body = fetch_body(wanted, partition_bytes_max=partition_bytes, wait_ms=1000)
        return request(FETCH, FETCH_VERSION, body)

    def fetch_lead_bytes(self) -> int:
        """Length, correlation id and all that stands before the first partition."""
        return 4 + 4 + 4 + 2 + 4 + 4 + (2 + len(self.topic)) + 4


FETCH_PARTITION = struct.Struct(">ihqqqiii")


class LoadError(Exception):
    """The server answered with an error, or closed the connection."""


def connect(port: int) -> socket.socket:
    """A plain blocking connection, with no delay for small packets."""
    connection = socket.create_connection((HOST, port), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(None)
    limit = struct.pack("ll", 120, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    return connection


def read_exactly(connection: socket.socket, view: memoryview) -> None:
    """Fill the view."""
    while view:
        count = connection.recv_into(view, len(view), socket.MSG_WAITALL)
        if count == 0:
            raise LoadError("the server closed the connection")
        view = view[count:]


def produce(port: int, shape: Shape, *, total_bytes: int, in_flight: int) -> Measured:
    """Send batches round robin over the partitions with a window of requests in flight."""
    frames = shape.produce_frames()
    batch_bytes = len(shape.batch())
    count = max(len(frames), total_bytes // batch_bytes)
    connection = connect(port)
    watch = Stopwatch()
    pump(connection, shape, frames, count=count, in_flight=in_flight)
    return watch.measured(
        moved_bytes=count * batch_bytes,
        requests=count,
    )


def pump(
    connection: socket.socket,
    shape: Shape,
    frames: Sequence[bytes],
    *,
    count: int,
    in_flight: int,
) -> None:
    """Send so many of the requests in turn, with a window in flight, and check each answer."""
    answer = bytearray(shape.produce_answer_bytes())
    view, error_at = memoryview(answer), shape.produce_error_at()
    sent = done = 0
    while done < count:
        while sent < count and sent - done < in_flight:
            connection.sendall(frames[sent % len(frames)])
            sent += 1
        read_exactly(connection, view)
        check(answer, error_at)
        done += 1


def check(answer: bytearray, error_at: int) -> None:
    """Raise if the answer to a Produce tells an error."""
    if answer[error_at] or answer[error_at + 1]:
        code = struct.unpack_from(">h", answer, error_at)[0]
        raise LoadError(f"Produce answered error {code}")


def round_trips(port: int, shape: Shape, *, count: int) -> Measured:
    """Send one request at a time and note how long each takes."""
    frame = shape.produce_frames()[0]
    answer = bytearray(shape.produce_answer_bytes())
    view, error_at = memoryview(answer), shape.produce_error_at()
    connection = connect(port)
    taken: list[float] = []
    watch = Stopwatch()
    for _ in range(count):
        before_s = time.perf_counter()
        connection.sendall(frame)
        read_exactly(connection, view)
        taken.append((time.perf_counter() - before_s) * 1e6)
        check(answer, error_at)
    return watch.measured(
        moved_bytes=count * shape.record_bytes,
        requests=count,
        round_trips_us=taken,
    )


def fetch(
    port: int, shape: Shape, *, total_bytes: int, partition_bytes: int, end_offset: int
) -> Measured:
    """Read every partition from offset 0, throw the bytes away, start over at the end."""
    batch_bytes, per_batch = len(shape.batch()), shape.records_per_batch()
    partition_bytes = max(1, partition_bytes // batch_bytes) * batch_bytes  # No cut batches.
    offsets = [0] * shape.partitions
    lead = memoryview(bytearray(shape.fetch_lead_bytes()))
    part = memoryview(bytearray(FETCH_PARTITION.size))
    scratch = memoryview(bytearray(SCRATCH_BYTES))
    tail = memoryview(bytearray(4096))
    connection = connect(port)
    moved = requests = 0
    watch = Stopwatch()
    while moved < total_bytes:
        connection.sendall(shape.fetch_frame(offsets, partition_bytes))
        requests += 1
        read_exactly(connection, lead)
        left = struct.unpack_from(">i", lead)[0] + 4 - len(lead)
        for _ in range(shape.partitions):
            read_exactly(connection, part)
            left -= len(part)
            index, code, _, _, _, aborted, _, size = FETCH_PARTITION.unpack(part)
            if code or aborted > 0:
                raise LoadError(f"Fetch answered error {code}")
            discard(connection, scratch, max(size, 0))
            left -= max(size, 0)
            moved += max(size, 0)
            offsets[index] += size // batch_bytes * per_batch
            if offsets[index] >= end_offset:
                offsets[index] = 0
        read_exactly(connection, tail[:left])
    return watch.measured(
        moved_bytes=moved,
        requests=requests,
    )


def discard(connection: socket.socket, scratch: memoryview, size: int) -> None:
    """Read `size` bytes and forget them."""
    while size:
        count = connection.recv_into(scratch, min(size, SCRATCH_BYTES))
        if count == 0:
            raise LoadError("the server closed the connection")
        size -= count


def cpu_seconds() -> float:
    """Processor time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Stopwatch:
    """Runs from its making on, by the wall and by the processor."""

    def __init__(self) -> None:
        self._cpu_s = cpu_seconds()
        self.started_s = time.perf_counter()

    def measured(
        self, *, moved_bytes: int, requests: int, round_trips_us: Sequence[float] = ()
    ) -> Measured:
        """What was moved up to now."""
        return Measured(
            bytes=moved_bytes,
            requests=requests,
            seconds=time.perf_counter() - self.started_s,
            client_cpu_s=cpu_seconds() - self._cpu_s,
            round_trips_us=list(round_trips_us),
        )


def add_shape(parser: argparse.ArgumentParser, *, batch_bytes: int = 1_048_576) -> None:
    """The options that tell a Shape."""
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--batch-bytes", type=int, default=batch_bytes)
    parser.add_argument("--record-bytes", type=int, default=1024)
    parser.add_argument("--schema-id", type=int)


def shape_of(options: argparse.Namespace) -> Shape:
    """The Shape that the options tell."""
    return Shape(
        topic=options.topic,
        partitions=options.partitions,
        batch_bytes=options.batch_bytes,
        record_bytes=options.record_bytes,
        schema_id=options.schema_id,
    )


def main() -> None:
    """Run one load and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=["produce", "fetch", "round-trips"])
    parser.add_argument("--port", type=int, required=True)
    add_shape(parser)
    parser.add_argument("--total-bytes", type=int, default=0)
    parser.add_argument("--in-flight", type=int, default=5)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--partition-bytes", type=int, default=1_048_576)
    parser.add_argument("--end-offset", type=int, default=0)
    options = parser.parse_args()
    shape = shape_of(options)
    if options.work == "produce":
        measured = produce(
            options.port, shape, total_bytes=options.total_bytes, in_flight=options.in_flight
        )
    elif options.work == "fetch":
        measured = fetch(
            options.port,
            shape,
            total_bytes=options.total_bytes,
            partition_bytes=options.partition_bytes,
            end_offset=options.end_offset,
        )
    else:
        measured = round_trips(options.port, shape, count=options.count)
    print(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main()
