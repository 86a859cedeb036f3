"""The load generator for a cluster: prebuilt bytes to the leaders of a topic, with acks=all.

A process of its own per run, like bench.load. `produce` keeps a window of requests in flight to
every leader. `paced` sends one record at a time at a fixed rate, whatever the answers do, and
counts each from the moment it was due: a server that stalls pays for everyone who had to wait.
`copy` reads whole partitions from one leader each and appends the bytes to files: what a follower
must do at the least.
"""

import argparse
import json
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from tests.support.wire import FETCH, PRODUCE, RawConnection, fetch_body, produce_body, request

from bench.load import (
    FETCH_PARTITION,
    FETCH_VERSION,
    PRODUCE_VERSION,
    LoadError,
    Measured,
    Shape,
    Stopwatch,
    add_shape,
    check,
    connect,
    pump,
    read_exactly,
    shape_of,
)

ALL_IN_SYNC = -1
BATCH_HEAD = struct.Struct(">qi11xi")  # Base offset, length, last offset delta.


def leaders_of(address: str, topic: str) -> dict[int, list[int]]:
    """The partitions that each broker leads, by the broker's port."""
    from penstock.client.wire.cluster import ClusterClient

    with ClusterClient(address) as cluster:
        (found,) = cluster.metadata([topic]).topics
        led: dict[int, list[int]] = {}
        for part in found.partitions:
            if part.leader_id < 0:
                raise LoadError(f"{topic}-{part.partition_index} has no leader")
            led.setdefault(cluster.nodes[part.leader_id].port, []).append(part.partition_index)
        return led


def frames_for(shape: Shape, partitions: Sequence[int]) -> list[bytes]:
    """One request per partition, each with one batch for all replicas."""
    body = shape.batch()
    return [
        request(
            PRODUCE,
            PRODUCE_VERSION,
            produce_body({(shape.topic, partition): body}, acks=ALL_IN_SYNC, timeout_ms=60_000),
        )
        for partition in partitions
    ]


def produce(address: str, shape: Shape, *, total_bytes: int, in_flight: int) -> Measured:
    """Every leader gets its share, over a connection and a thread of its own."""
    led = leaders_of(address, shape.topic)
    batch_bytes = len(shape.batch())
    per_partition = max(1, total_bytes // batch_bytes // shape.partitions)
    watch = Stopwatch()
    together(
        [
            partial(
                pump_to, port, shape, frames_for(shape, its), len(its) * per_partition, in_flight
            )
            for port, its in led.items()
        ]
    )
    count = per_partition * shape.partitions
    return watch.measured(
        moved_bytes=count * batch_bytes,
        requests=count,
    )


def pump_to(port: int, shape: Shape, frames: Sequence[bytes], count: int, in_flight: int) -> None:
    """Send `count` requests to one leader."""
    with connect(port) as connection:
        pump(connection, shape, frames, count=count, in_flight=in_flight)


def paced(address: str, shape: Shape, *, count: int, per_s: float) -> Measured:
    """One record per request, at a steady rate over all partitions in turn."""
    led = leaders_of(address, shape.topic)
    lanes = [Lane(port, shape, its) for port, its in led.items()]
    order = [lane for lane in lanes for _ in lane.frames]
    readers = [threading.Thread(target=lane.read, daemon=True) for lane in lanes]
    for reader in readers:
        reader.start()
    watch = Stopwatch()
    for number in range(count):
        due_s = watch.started_s + number / per_s
        while (wait_s := due_s - time.perf_counter()) > 0:
            time.sleep(wait_s)
        order[number % len(order)].send(due_s)
    for lane in lanes:
        lane.finish()
    for reader in readers:
        reader.join(120)
    failed = [lane.error for lane in lanes if lane.error is not None]
    if failed:
        raise failed[0]
    return watch.measured(
        moved_bytes=count * shape.record_bytes,
        requests=count,
        round_trips_us=[trip for lane in lanes for trip in lane.trips_us],
    )


class Lane:
    """A connection to one leader; answers come in the order of the requests."""

    def __init__(self, port: int, shape: Shape, partitions: Sequence[int]) -> None:
        self.frames = frames_for(shape, partitions)
        self.shape = shape
        self.connection = connect(port)
        self.due: deque[float | None] = deque()  # None: nothing more will come.
        self.sent = threading.Semaphore(0)
        self.number = 0
        self.trips_us: list[float] = []
        self.error: Exception | None = None

    def send(self, due_s: float) -> None:
        if self.error is not None:
            raise self.error
        self.due.append(due_s)
        self.connection.sendall(self.frames[self.number % len(self.frames)])
        self.number += 1
        self.sent.release()

    def finish(self) -> None:
        self.due.append(None)
        self.sent.release()

    def read(self) -> None:
        answer = bytearray(self.shape.produce_answer_bytes())
        try:
            while True:
                self.sent.acquire()
                due_s = self.due.popleft()
                if due_s is None:
                    return
                read_exactly(self.connection, memoryview(answer))
                self.trips_us.append((time.perf_counter() - due_s) * 1e6)
                check(answer, self.shape.produce_error_at())
        except (LoadError, OSError) as error:
            self.error = error


def copy(address: str, shape: Shape, *, partition_bytes: int, directory: Path) -> Measured:
    """Read every partition to its end from its leader and append the bytes to a file."""
    led = leaders_of(address, shape.topic)
    moved: list[int] = []
    watch = Stopwatch()
    together(
        [
            partial(copy_from, port, shape, its, partition_bytes, directory, moved)
            for port, its in led.items()
        ]
    )
    return watch.measured(
        moved_bytes=sum(moved),
        requests=len(led),
    )


def copy_from(
    port: int,
    shape: Shape,
    partitions: Sequence[int],
    partition_bytes: int,
    directory: Path,
    moved: list[int],
) -> None:
    """All bytes of these partitions; `moved` learns of each piece."""
    partition_bytes = max(len(shape.batch()), partition_bytes)
    with RawConnection(port, timeout_s=60) as asked:
        ends = {p: asked.offset(shape.topic, partition=p) for p in partitions}
    lead = memoryview(bytearray(shape.fetch_lead_bytes()))
    part = memoryview(bytearray(FETCH_PARTITION.size))
    piece = memoryview(bytearray(partition_bytes))
    tail = memoryview(bytearray(4096))
    connection = connect(port)
    for number in partitions:
        with (directory / f"{shape.topic}-{number}").open("ab", buffering=0) as file:
            offset = 0
            while offset < ends[number]:
                connection.sendall(_fetch_one(shape, number, offset, partition_bytes))
                read_exactly(connection, lead)
                left = struct.unpack_from(">i", lead)[0] + 4 - len(lead) - len(part)
                read_exactly(connection, part)
                _, code, _, _, _, _, _, size = FETCH_PARTITION.unpack(part)
                if code or not 0 < size <= len(piece):
                    raise LoadError(f"Fetch answered error {code} and {size} bytes")
                read_exactly(connection, piece[:size])
                read_exactly(connection, tail[: left - size])
                whole, offset = _whole_batches(piece[:size])
                file.write(piece[:whole])
                moved.append(whole)


def _whole_batches(piece: memoryview) -> tuple[int, int]:
    """How many bytes end with a whole batch, and the offset behind it."""
    at, offset = 0, -1
    while at + BATCH_HEAD.size <= len(piece):
        base, length, last_delta = BATCH_HEAD.unpack_from(piece, at)
        if at + 12 + length > len(piece):
            break
        at, offset = at + 12 + length, base + last_delta + 1
    if offset < 0:
        raise LoadError(f"no whole batch in {len(piece)} bytes")
    return at, offset


def _fetch_one(shape: Shape, partition: int, offset: int, partition_bytes: int) -> bytes:
    body = fetch_body(
        {(shape.topic, partition): offset}, partition_bytes_max=partition_bytes, wait_ms=1000
    )
    return request(FETCH, FETCH_VERSION, body)


def together(jobs: Sequence[Callable[[], object]]) -> None:
    """Run each in a thread; the first that fails is raised."""
    failures: list[Exception] = []

    def guarded(job: Callable[[], object]) -> None:
        try:
            job()
        except (LoadError, OSError) as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def main() -> None:
    """Run one load and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=["produce", "paced", "copy"])
    parser.add_argument("--address", required=True)
    add_shape(parser, batch_bytes=65_536)
    parser.add_argument("--total-bytes", type=int, default=0)
    parser.add_argument("--in-flight", type=int, default=5)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--per-s", type=float, default=1000)
    parser.add_argument("--partition-bytes", type=int, default=1_048_576)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    shape = shape_of(options)
    if options.work == "produce":
        measured = produce(
            options.address, shape, total_bytes=options.total_bytes, in_flight=options.in_flight
        )
    elif options.work == "paced":
        measured = paced(options.address, shape, count=options.count, per_s=options.per_s)
    else:
        measured = copy(
            options.address,
            shape,
            partition_bytes=options.partition_bytes,
            directory=options.directory,
        )
    print(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main()
