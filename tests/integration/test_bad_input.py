"""Bad input: the sender gets an error or is cut off; memory, neighbours and the log are safe."""

import gzip
import os
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.support.batches import batch, record, stored_batches
from tests.support.broker import BrokerProcess
from tests.support.fixtures import StartBroker
from tests.support.mutation import Mutator
from tests.support.neighbour import CANARY, Neighbour, neighbour_at_work
from tests.support.waiting import eventually
from tests.support.wire import (
    API_VERSIONS,
    FETCH,
    METADATA,
    PRODUCE,
    RawConnection,
    Reader,
    WireError,
    fetch_body,
    produce_body,
    request,
    string,
)
from tests.support.writers import broken_batch_length, read_log
from tests.unit.protocol.samples import sample

from penstock.protocol.apis import ApiKey, request_class, supported_versions

LONG = os.environ.get("PENSTOCK_LONG") == "1"
FRAMES = 1_000_000 if LONG else 20_000
SEED = int(os.environ.get("PENSTOCK_SEED", "1"))
GROWTH_BYTES_MAX = 150_000_000
CORRUPT_MESSAGE, UNKNOWN_TOPIC, MESSAGE_TOO_LARGE, INVALID_RECORD = 2, 3, 10, 87
UNSUPPORTED_VERSION = 35
TARGET = "target"


@contextmanager
def undisturbed(broker: BrokerProcess) -> Iterator[Neighbour]:
    """A neighbour works all the while; memory stays bounded and nothing wrong is stored."""
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(TARGET) == 0
    before_bytes = broker.rss_bytes()
    with neighbour_at_work(broker) as neighbour:
        yield neighbour
    assert broker.rss_peak_bytes() < before_bytes + GROWTH_BYTES_MAX
    assert broker.tracebacks() == {}
    values = [value for _, value in read_log(broker.port, CANARY, 0)]
    assert values == [b"%d" % number for number in range(neighbour.sent)]
    assert_all_stored_batches_are_whole(broker.data)


def assert_all_stored_batches_are_whole(data: Path) -> None:
    for path in data.glob("*/*.log"):
        content = path.read_bytes()
        batches = list(stored_batches(content))
        assert all(stored.crc_is_right for stored in batches), path
        assert sum(61 + len(stored.records) for stored in batches) == len(content), path


def good_requests(broker: BrokerProcess) -> list[bytes]:
    """Requests of every API and version that the broker serves, with chance in every field."""
    chance = random.Random(2)
    found = [
        request(PRODUCE, 7, produce_body({(TARGET, 0): batch([b"good", b"batch"])})),
        request(FETCH, 11, fetch_body({(TARGET, 0): 0}, wait_ms=10)),
    ]
    with RawConnection(broker.port) as connection:
        served = connection.api_versions().ranges
    for key, (lowest, highest) in served.items():
        kind = request_class(ApiKey(key))
        for version in range(lowest, highest + 1):
            for _ in range(3):
                body = sample(kind, version, chance).encode(version)
                flexible = kind.is_flexible(version)
                found.append(request(key, version, body, flexible=flexible))
    return found


def throw(port: int, wrong: bytes) -> None:
    """Send the bytes on a connection of their own, which must then end by itself."""
    with RawConnection(port, timeout_s=120) as connection:
        with suppress(OSError):
            connection.send(wrong)
            connection.socket.shutdown(socket.SHUT_WR)
        assert connection.is_closed_by_peer(), f"still open after {wrong.hex()}"


def test_random_and_mutated_frames_do_no_harm(broker: BrokerProcess) -> None:
    mutator = Mutator(seed=SEED, good=good_requests(broker))
    with undisturbed(broker):
        for _ in range(FRAMES):
            throw(broker.port, mutator.frame())


def test_mutated_batches_are_refused_or_were_still_right(broker: BrokerProcess) -> None:
    good = batch([b"first", b"second" * 20], producer=(-1, -1))
    chance = random.Random(3)
    with undisturbed(broker):
        for _ in range(FRAMES // 20):
            wrong = bytearray(good)
            for _ in range(chance.randrange(1, 4)):
                wrong[chance.randrange(len(wrong))] ^= 1 << chance.randrange(8)
            body = produce_body({(TARGET, 0): bytes(wrong)})
            throw(broker.port, request(PRODUCE, 7, body))
        for _, value in read_log(broker.port, TARGET, 0):
            assert value in (b"first", b"second" * 20)


def told(broker: BrokerProcess) -> list[str]:
    """The lines of the log, but for those that a busy machine adds."""
    return [line for line in broker.log.splitlines() if "All clients have been waiting" not in line]


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 104_857_601, 2**31 - 1])
def test_an_impossible_length_closes_the_connection_with_one_line(
    broker: BrokerProcess, length: int
) -> None:
    with undisturbed(broker):
        before = len(told(broker))
        with RawConnection(broker.port) as connection:
            connection.send(struct.pack(">i", length) + b"anything")
            assert connection.is_closed_by_peer()
        assert len(told(broker)) <= before + 1


@pytest.mark.parametrize("count", [-2, 1000, 2**31 - 1, -(2**31)])
def test_an_array_of_impossible_size_closes_the_connection(
    broker: BrokerProcess, count: int
) -> None:
    bodies = {
        (FETCH, 4): struct.pack(">iiiibi", -1, 100, 1, 1000, 0, count),
        (PRODUCE, 3): string(None) + struct.pack(">hii", 1, 1000, count),
    }
    if count > 0:  # A list of topics that may be null is null for any negative count.
        bodies[METADATA, 1] = struct.pack(">i", count)
    with undisturbed(broker):
        for (key, version), body in bodies.items():
            with RawConnection(broker.port) as connection:
                connection.send(request(key, version, body))
                assert connection.is_closed_by_peer()


@pytest.mark.parametrize("key", [-1, 4, 93, 32_000])
def test_an_unknown_api_closes_the_connection(broker: BrokerProcess, key: int) -> None:
    with undisturbed(broker), RawConnection(broker.port) as connection:
        connection.send(request(key, 0, b""))
        assert connection.is_closed_by_peer()


@pytest.mark.parametrize("key", [ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT])
def test_a_client_of_groups_that_are_not_served_is_told_so_and_may_go_on(
    broker: BrokerProcess, key: ApiKey
) -> None:
    version = supported_versions(key)[-1]
    body = sample(request_class(key), version, random.Random(4)).encode(version)
    with undisturbed(broker), RawConnection(broker.port) as connection:
        assert key not in connection.api_versions().ranges
        answer = connection.ask(key, version, body, flexible=True)
        answer.take(1 + 4)  # No tagged fields in the header; throttle time.
        assert answer.number("h") == UNSUPPORTED_VERSION
        assert b"does not support" in answer.data
        assert connection.api_versions().error_code == 0


@pytest.mark.parametrize("version", [-1, 99])
def test_an_unknown_version_closes_the_connection(broker: BrokerProcess, version: int) -> None:
    with undisturbed(broker), RawConnection(broker.port) as connection:
        connection.send(request(METADATA, version, struct.pack(">i", 0)))
        assert connection.is_closed_by_peer()


def test_api_versions_from_the_future_are_told_what_is_spoken(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as connection:
        reader = connection.ask(API_VERSIONS, 77, b"\x05java\x05what", flexible=True)
        assert reader.number("h") == UNSUPPORTED_VERSION
        ranges = {
            reader.number("h"): (reader.number("h"), reader.number("h"))
            for _ in range(reader.number("i"))
        }
        assert ranges == connection.api_versions().ranges


WRONG_BATCHES = {
    "a wrong checksum": (
        batch([b"x"])[:-1] + b"\xff",
        {CORRUPT_MESSAGE},
    ),
    "a batch cut off": (batch([b"x" * 100])[:-30], {CORRUPT_MESSAGE, INVALID_RECORD}),
    "a batch of half a header": (batch([b"x"])[:30], {CORRUPT_MESSAGE, INVALID_RECORD}),
    "a length beyond the end": (
        broken_batch_length(batch([b"x"]), 1_000_000),
        {CORRUPT_MESSAGE, INVALID_RECORD},
    ),
    "a negative length": (
        broken_batch_length(batch([b"x"]), -5),
        {CORRUPT_MESSAGE},
    ),
    "a length of nothing": (broken_batch_length(batch([b"x"]), 0), {CORRUPT_MESSAGE}),
    "bytes behind the batch": (
        batch([b"x"]) + b"tail",
        {CORRUPT_MESSAGE, INVALID_RECORD},
    ),
    "two batches in one": (
        batch([b"x"]) + batch([b"y"]),
        {INVALID_RECORD},
    ),
    "more records claimed than there are": (
        batch([b"x"] * 5, records=record(0, b"x")),
        {CORRUPT_MESSAGE, INVALID_RECORD},
    ),
    "a record larger than allowed": (batch([bytes(1_100_000)]), {MESSAGE_TOO_LARGE}),
}


@pytest.mark.parametrize("name", WRONG_BATCHES)
def test_a_wrong_batch_gets_its_error_and_is_not_stored(broker: BrokerProcess, name: str) -> None:
    wrong, codes = WRONG_BATCHES[name]
    with undisturbed(broker), RawConnection(broker.port) as connection:
        answer = connection.produce({(TARGET, 0): wrong})[TARGET, 0]
        assert answer.error_code in codes
        assert connection.offset(TARGET) == 0
        connection.produce_one(TARGET, batch([b"good"]))  # The connection lives on.
        assert connection.offset(TARGET) == 1


def test_no_records_at_all_are_refused(broker: BrokerProcess) -> None:
    with undisturbed(broker), RawConnection(broker.port) as connection, suppress(WireError):
        answer = connection.produce({(TARGET, 0): b""})[TARGET, 0]
        assert answer.error_code != 0
    with RawConnection(broker.port) as connection:
        assert connection.offset(TARGET) == 0


def test_a_small_batch_that_unpacks_to_much_takes_no_memory(broker: BrokerProcess) -> None:
    bomb = gzip.compress(bytes(600_000_000))  # Some 600 KB.
    with undisturbed(broker), RawConnection(broker.port, timeout_s=120) as connection:
        # Another codec than the producer's, so that the broker has to unpack it.
        assert connection.create_topic("packed", configs={"compression.type": "lz4"}) == 0
        wrong = batch([b"x"], attributes=1, records=bomb)
        assert connection.produce({("packed", 0): wrong})["packed", 0].error_code != 0
        assert connection.offset("packed") == 0


def test_slow_writers_are_served_and_hold_nobody_up(broker: BrokerProcess) -> None:
    wanted = request(METADATA, 1, struct.pack(">i", 0))
    with undisturbed(broker), ExitStack() as open_connections:
        slow = [open_connections.enter_context(RawConnection(broker.port)) for _ in range(50)]
        for piece in (wanted[i : i + 1] for i in range(len(wanted))):
            for connection in slow:
                connection.send(piece)
        for connection in slow:
            assert Reader(connection.read_frame()).number("i") == 7


def test_announced_frames_take_memory_only_as_they_arrive(broker: BrokerProcess) -> None:
    with undisturbed(broker) as neighbour, ExitStack() as open_connections:
        for _ in range(100):
            connection = open_connections.enter_context(RawConnection(broker.port))
            connection.send(struct.pack(">i", 100_000_000) + bytes(1000))
        sent = neighbour.sent
        eventually(lambda: neighbour.sent > sent + 20)


def test_a_client_that_never_reads_is_not_answered_without_end(broker: BrokerProcess) -> None:
    with undisturbed(broker) as neighbour:
        with RawConnection(broker.port) as connection:
            for _ in range(20):
                connection.produce_one(TARGET, batch([bytes(900_000)]))
        ask = request(FETCH, 11, fetch_body({(TARGET, 0): 0}, partition_bytes_max=20_000_000))
        with RawConnection(broker.port) as connection:
            connection.socket.setblocking(False)
            with suppress(BlockingIOError):
                for _ in range(200_000):
                    connection.socket.send(ask)
            sent = neighbour.sent
            eventually(lambda: neighbour.sent > sent + 20)


def test_connections_cut_in_the_middle_leave_nothing_behind(broker: BrokerProcess) -> None:
    body = produce_body({(TARGET, 0): batch([b"x" * 50_000])})
    whole = request(PRODUCE, 7, body)
    with undisturbed(broker):
        for cut in range(1, len(whole), 1500):
            with RawConnection(broker.port) as connection:
                connection.send(whole[:cut])
                reset = struct.pack("ii", 1, 0)
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        with RawConnection(broker.port) as connection:
            assert connection.offset(TARGET) == 0
        eventually(lambda: open_sockets(broker) < 10, what="few open sockets")


def open_sockets(broker: BrokerProcess) -> int:
    found = 0
    for link in Path(f"/proc/{broker.pid}/fd").iterdir():
        with suppress(OSError):
            found += str(link.readlink()).startswith("socket:")
    return found


def test_silent_connections_are_closed_in_the_end(start_broker: StartBroker) -> None:
    broker = start_broker({"connections.max.idle.ms": "1000"})
    with RawConnection(broker.port, timeout_s=120) as connection:
        assert connection.api_versions().error_code == 0
        assert connection.is_closed_by_peer()
    assert broker.answers()


def test_requests_of_one_connection_are_answered_in_their_order(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(TARGET) == 0
        slow = fetch_body({(TARGET, 0): 0}, wait_ms=400)
        for number in range(40):
            waits = number % 10 == 0
            key, version, body = (FETCH, 11, slow) if waits else (API_VERSIONS, 0, b"")
            connection.send(request(key, version, body, correlation_id=number))
        answered = [Reader(connection.read_frame()).number("i") for _ in range(40)]
        assert answered == list(range(40))


def test_a_thousand_idle_connections_cost_little(broker: BrokerProcess) -> None:
    with undisturbed(broker) as neighbour, ExitStack() as open_connections:
        for _ in range(1000):
            open_connections.enter_context(RawConnection(broker.port))
        sent = neighbour.sent
        eventually(lambda: neighbour.sent > sent + 20)


def test_bytes_behind_a_request_are_ignored_as_kafka_ignores_them(broker: BrokerProcess) -> None:
    with undisturbed(broker), RawConnection(broker.port) as connection:
        for extra in (1, 1000, 5_000_000):
            connection.ask(METADATA, 1, struct.pack(">i", 0) + bytes(extra))
