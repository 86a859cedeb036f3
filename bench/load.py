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
import ssl
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from tests.support.batches import batch, record
from tests.support.wire import API_VERSIONS, FETCH, PRODUCE, fetch_body, produce_body, request

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

    def fetch_frame_of(self, partition: int, partition_bytes: int, offset: int = 0) -> bytes:
        """A fetch of one partition, as a consumer sends it that has no other."""
        body = fetch_body({(self.topic, partition): offset}, partition_bytes_max=partition_bytes)
        return request(FETCH, FETCH_VERSION, body)

    def fetch_offset_at(self) -> int:
        """Where a fetch of one partition has its offset."""
        mark = 0x0102_0304_0506_0708
        return self.fetch_frame_of(0, 1, offset=mark).index(struct.pack(">q", mark))

    def fetch_lead_bytes(self) -> int:
        """Length, correlation id and all that stands before the first partition."""
        return 4 + 4 + 4 + 2 + 4 + 4 + (2 + len(self.topic)) + 4


FETCH_PARTITION = struct.Struct(">ihqqqiii")


class LoadError(Exception):
    """The server answered with an error, or closed the connection."""


class Door:
    """The port of a server, and how a connection is made there: plain, or through TLS 1.3."""

    def __init__(self, port: int, ca: str | None = None) -> None:
        self.port = port
        self.tls: ssl.SSLContext | None = None
        if ca is not None:
            self.tls = ssl.create_default_context(cafile=ca)
            self.tls.minimum_version = ssl.TLSVersion.TLSv1_3

    def connect(self) -> socket.socket:
        """A blocking connection, with no delay for small packets."""
        connection = connect(self.port)
        if self.tls is None:
            return connection
        return self.tls.wrap_socket(connection, server_hostname=HOST)


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
    flags = 0 if isinstance(connection, ssl.SSLSocket) else socket.MSG_WAITALL
    while view:
        count = connection.recv_into(view, len(view), flags)
        if count == 0:
            raise LoadError("the server closed the connection")
        view = view[count:]


def produce(door: Door, shape: Shape, *, total_bytes: int, in_flight: int) -> Measured:
    """Send batches round robin over the partitions with a window of requests in flight."""
    frames = shape.produce_frames()
    batch_bytes = len(shape.batch())
    count = max(len(frames), total_bytes // batch_bytes)
    connection = door.connect()
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


def round_trips(door: Door, shape: Shape, *, count: int) -> Measured:
    """Send one request at a time and note how long each takes."""
    frame = shape.produce_frames()[0]
    answer = bytearray(shape.produce_answer_bytes())
    view, error_at = memoryview(answer), shape.produce_error_at()
    connection = door.connect()
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
    door: Door, shape: Shape, *, total_bytes: int, partition_bytes: int, end_offset: int
) -> Measured:
    """Read every partition from offset 0, throw the bytes away, start over at the end."""
    batch_bytes, per_batch = len(shape.batch()), shape.records_per_batch()
    partition_bytes = max(1, partition_bytes // batch_bytes) * batch_bytes  # No cut batches.
    offsets = [0] * shape.partitions
    lead = memoryview(bytearray(shape.fetch_lead_bytes()))
    part = memoryview(bytearray(FETCH_PARTITION.size))
    scratch = memoryview(bytearray(SCRATCH_BYTES))
    tail = memoryview(bytearray(4096))
    connection = door.connect()
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


def connects(door: Door, *, count: int, threads: int) -> Measured:
    """Come in, ask for the versions and leave, again and again, on some threads."""
    question = request(API_VERSIONS, 0, b"")
    failures: list[Exception] = []

    def come_and_go(times: int) -> None:
        try:
            for _ in range(times):
                with door.connect() as connection:
                    connection.sendall(question)
                    size = memoryview(bytearray(4))
                    read_exactly(connection, size)
                    read_exactly(connection, memoryview(bytearray(int.from_bytes(size, "big"))))
        except (OSError, LoadError) as error:
            failures.append(error)

    watch = Stopwatch()
    working = [
        threading.Thread(target=come_and_go, args=(count // threads,)) for _ in range(threads)
    ]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join()
    if failures:
        raise LoadError(f"a connection failed: {failures[0]}")
    return watch.measured(moved_bytes=0, requests=count // threads * threads)


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
    parser.add_argument("work", choices=["produce", "fetch", "round-trips", "connects"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ca", help="the authority of a TLS listener; without it it is plain")
    parser.add_argument("--threads", type=int, default=4)
    add_shape(parser)
    parser.add_argument("--total-bytes", type=int, default=0)
    parser.add_argument("--in-flight", type=int, default=5)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--partition-bytes", type=int, default=1_048_576)
    parser.add_argument("--end-offset", type=int, default=0)
    options = parser.parse_args()
    shape, door = shape_of(options), Door(options.port, options.ca)
    if options.work == "produce":
        measured = produce(
            door, shape, total_bytes=options.total_bytes, in_flight=options.in_flight
        )
    elif options.work == "fetch":
        measured = fetch(
            door,
            shape,
            total_bytes=options.total_bytes,
            partition_bytes=options.partition_bytes,
            end_offset=options.end_offset,
        )
    elif options.work == "connects":
        measured = connects(door, count=options.count, threads=options.threads)
    else:
        measured = round_trips(door, shape, count=options.count)
    print(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main()
