"""The load that consumer groups put on a coordinator: `python -m bench.group_load ...`.

Commits go one at a time on one connection, as a consumer that commits synchronously sends them.
Rebalances are a hundred members on a hundred connections in one event loop: what a member does is
what the clients do, but for fetching, so that the coordinator is what the clock sees.
"""

import argparse
import asyncio
import json
import socket
import struct
import time
from dataclasses import asdict

from bench.group_members import ClassicMember, Group, ModernMember
from bench.load import HOST, LoadError, Measured, Stopwatch, connect, cpu_seconds, read_exactly
from penstock.client.wire.cluster import ClusterClient
from penstock.protocol.headers import encode_request_header
from penstock.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

COMMIT_VERSION = 9  # The newest that names topics instead of their ids.
_FIRST_OFFSET = 0x0102_0304_0506_0708
_COORDINATOR_SECONDS_MAX = 60


def commits(port: int, *, topic: str, group: str, count: int) -> Measured:
    """Commit offsets of one partition, each after the answer to the one before."""
    await_coordinator(port, group)
    frame = bytearray(commit_frame(topic=topic, group=group))
    offset_at = frame.index(struct.pack(">q", _FIRST_OFFSET))
    connection = connect(port)
    await_commits(connection, frame)
    taken: list[float] = []
    watch = Stopwatch()
    for number in range(count):
        struct.pack_into(">q", frame, offset_at, number)
        before_s = time.perf_counter()
        answer = exchange(connection, frame)
        taken.append((time.perf_counter() - before_s) * 1e6)
        code = commit_code(answer)
        if code:
            raise LoadError(f"OffsetCommit answered error {code}")
    return watch.measured(
        moved_bytes=count * len(frame),
        requests=count,
        round_trips_us=taken,
    )


def commit_frame(*, topic: str, group: str) -> bytes:
    """A commit of one partition by somebody who is no member, as a request with its length."""
    request = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=_FIRST_OFFSET, committed_metadata=""
                    )
                ],
            )
        ],
    )
    header = encode_request_header(request.api_key, COMMIT_VERSION, 7, "bench")
    body = header + request.encode(COMMIT_VERSION)
    return struct.pack(">i", len(body)) + body


def commit_error_at(topic: str) -> int:
    """Where the answer to such a request has its error code: behind the partition's index."""
    lead = 4 + 4 + 1  # Length, correlation id, tags.
    return lead + 4 + 1 + (1 + len(topic)) + 1 + 4


def exchange(connection: socket.socket, frame: bytes | bytearray) -> memoryview:
    """Send a request and read the answer to it."""
    connection.sendall(frame)
    size = memoryview(bytearray(4))
    read_exactly(connection, size)
    answer = memoryview(bytearray(struct.unpack(">i", size)[0]))
    read_exactly(connection, answer)
    return answer


def commit_code(answer: memoryview) -> int:
    """The partition's error code; the header is a correlation id and an empty tag list."""
    decoded = OffsetCommitResponse.decode(answer, COMMIT_VERSION, 5)
    return decoded.topics[0].partitions[0].error_code


def await_commits(connection: socket.socket, frame: bytes | bytearray) -> None:
    """A coordinator is named before it has read its partition; wait until it takes a commit."""
    give_up_s = time.monotonic() + _COORDINATOR_SECONDS_MAX
    while code := commit_code(exchange(connection, frame)):
        if time.monotonic() > give_up_s:
            raise LoadError(f"the coordinator still answers error {code}")
        time.sleep(0.05)


def await_coordinator(port: int, group: str) -> None:
    """The first look-up makes the topic of offsets; wait until its partitions are loaded."""
    give_up_s = time.monotonic() + _COORDINATOR_SECONDS_MAX
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    with ClusterClient(f"{HOST}:{port}", client_id="bench") as cluster:
        while True:
            answer = cluster.ask_any(request, FindCoordinatorResponse)
            if answer.coordinators and answer.coordinators[0].error_code == 0:
                return
            if time.monotonic() > give_up_s:
                raise LoadError("there is no coordinator")
            time.sleep(0.05)


async def rebalance(group: Group, kind: type[ClassicMember] | type[ModernMember]) -> float:
    """All members join at once; the seconds until every partition is with its last owner."""
    members = [kind(group, number) for number in range(group.size)]
    await asyncio.gather(*(member.connect() for member in members))
    group.begin()
    tasks = [asyncio.create_task(member.live()) for member in members]
    stable = asyncio.create_task(group.stable.wait())
    done, _ = await asyncio.wait([stable, *tasks], return_when=asyncio.FIRST_COMPLETED, timeout=300)
    seconds = time.perf_counter() - group.started_s
    for task in (stable, *tasks):
        if task not in done:
            task.cancel()
    await asyncio.gather(stable, *tasks, return_exceptions=True)
    await asyncio.gather(*(member.close() for member in members))
    if stable not in done:
        broken = [task.exception() for task in done if task is not stable]
        raise LoadError(f"no stable group after {seconds:.0f} s: {broken} {group}")
    return seconds


def main() -> None:
    """Run one load and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=["commits", "classic", "consumer"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--heartbeat-ms", type=int, default=100)
    options = parser.parse_args()
    if options.work == "commits":
        measured = commits(
            options.port, topic=options.topic, group=options.group, count=options.count
        )
    else:
        await_coordinator(options.port, options.group)
        group = Group(
            port=options.port,
            name=options.group,
            topic=options.topic,
            size=options.members,
            heartbeat_s=options.heartbeat_ms / 1000,
        )
        kind = ClassicMember if options.work == "classic" else ModernMember
        cpu_s = cpu_seconds()
        seconds = asyncio.run(rebalance(group, kind))
        measured = Measured(
            bytes=group.bytes,
            requests=group.requests,
            seconds=seconds,
            client_cpu_s=cpu_seconds() - cpu_s,
        )
    print(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main()
