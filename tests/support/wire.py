"""A Kafka client of raw bytes, packed by hand.

It shares no line with penstock.protocol, so a mistake there cannot hide by being made twice. It
speaks old, plain versions that both Penstock and Apache Kafka serve, and it can say wrong things:
`send` takes any bytes. Batches are built in batches.py.
"""

import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

HOST = "127.0.0.1"
PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, INIT_PRODUCER_ID = 18, 19, 20, 22
EARLIEST, LATEST = -2, -1


class WireError(OSError):
    """The peer closed the connection, or said something that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsAnswer:
    """Which versions of which API the peer serves."""

    error_code: int
    ranges: Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceAnswer:
    """What became of one partition's batches."""

    error_code: int
    base_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchAnswer:
    """What was read of one partition."""

    error_code: int
    high_watermark: int
    records: bytes


class Reader:
    """Reads big-endian values off an answer, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, kind: str) -> int:
        """The next value in struct's notation, such as "h" or "q"."""
        (value,) = struct.unpack_from(">" + kind, self.data, self.at)
        self.at += struct.calcsize(">" + kind)
        return int(value)

    def take(self, size: int) -> bytes:
        """The next bytes."""
        piece = self.data[self.at : self.at + max(size, 0)]
        self.at += max(size, 0)
        return piece

    def text(self) -> str:
        """The next string; null reads as empty."""
        return self.take(self.number("h")).decode()


def string(text: str | None) -> bytes:
    """A string as the old versions write it."""
    if text is None:
        return struct.pack(">h", -1)
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def frame(payload: bytes) -> bytes:
    """The payload behind its four bytes of length."""
    return struct.pack(">i", len(payload)) + payload


def request(
    api_key: int,
    version: int,
    body: bytes,
    *,
    correlation_id: int = 7,
    client_id: str | None = "raw",
    flexible: bool = False,
) -> bytes:
    """A whole frame: length, header, body."""
    header = struct.pack(">hhi", api_key, version, correlation_id) + string(client_id)
    return frame(header + (b"\0" if flexible else b"") + body)


def produce_body(
    batches: Mapping[tuple[str, int], bytes], *, acks: int = 1, timeout_ms: int = 10_000
) -> bytes:
    """Produce versions 3 to 8: batches by topic and partition."""
    topics: dict[str, list[tuple[int, bytes]]] = {}
    for (topic, partition), batch in batches.items():
        topics.setdefault(topic, []).append((partition, batch))
    parts = [string(None), struct.pack(">hii", acks, timeout_ms, len(topics))]
    for topic, partitions in topics.items():
        parts += [string(topic), struct.pack(">i", len(partitions))]
        for partition, batch in partitions:
            parts += [struct.pack(">ii", partition, len(batch)), batch]
    return b"".join(parts)


def fetch_body(
    offsets: Mapping[tuple[str, int], int],
    *,
    wait_ms: int = 500,
    bytes_min: int = 1,
    bytes_max: int = 52_428_800,
    partition_bytes_max: int = 1_048_576,
) -> bytes:
    """Fetch version 11, without a session."""
    topics: dict[str, list[tuple[int, int]]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, []).append((partition, offset))
    parts = [struct.pack(">iiiibii", -1, wait_ms, bytes_min, bytes_max, 0, 0, -1)]
    parts.append(struct.pack(">i", len(topics)))
    for topic, partitions in topics.items():
        parts += [string(topic), struct.pack(">i", len(partitions))]
        for partition, offset in partitions:
            parts.append(struct.pack(">iiqqi", partition, -1, offset, -1, partition_bytes_max))
    parts += [struct.pack(">i", 0), string("")]
    return b"".join(parts)


class RawConnection:
    """One blocking connection that sends what it is told and reads frames."""

    def __init__(self, port: int, *, host: str = HOST, timeout_s: float = 60.0) -> None:
        self.socket = socket.create_connection((host, port), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send any bytes."""
        self.socket.sendall(data)

    def read_exactly(self, size: int) -> bytes:
        """The next `size` bytes; WireError when the peer closes before."""
        buffer = bytearray(size)
        view = memoryview(buffer)
        done = 0
        while done < size:
            count = self.socket.recv_into(view[done:])
            if count == 0:
                raise WireError(f"closed after {done} of {size} bytes")
            done += count
        return bytes(buffer)

    def read_frame(self) -> bytes:
        """The payload of the next answer."""
        (size,) = struct.unpack(">i", self.read_exactly(4))
        return self.read_exactly(size)

    def is_closed_by_peer(self) -> bool:
        """Whether the peer closes the connection within the timeout; answers are read away."""
        try:
            while self.socket.recv(65_536):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def ask(self, api_key: int, version: int, body: bytes, *, flexible: bool = False) -> Reader:
        """Send a request and return its answer behind the correlation id."""
        self.correlation_id += 1
        wanted = self.correlation_id
        self.send(request(api_key, version, body, correlation_id=wanted, flexible=flexible))
        reader = Reader(self.read_frame())
        got = reader.number("i")
        if got != wanted:
            raise WireError(f"the answer is to request {got}, not {wanted}")
        return reader

    def api_versions(self) -> ApiVersionsAnswer:
        """ApiVersions version 0."""
        reader = self.ask(API_VERSIONS, 0, b"")
        error_code = reader.number("h")
        ranges = {}
        for _ in range(reader.number("i")):
            key, low, high = (reader.number("h") for _ in range(3))
            ranges[key] = (low, high)
        return ApiVersionsAnswer(error_code=error_code, ranges=ranges)

    def create_topic(
        self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> int:
        """CreateTopics version 2, replication factor 1; the error code."""
        body = struct.pack(">i", 1) + string(name) + struct.pack(">ihi", partitions, 1, 0)
        body += struct.pack(">i", len(configs or {}))
        for key, value in (configs or {}).items():
            body += string(key) + string(value)
        reader = self.ask(CREATE_TOPICS, 2, body + struct.pack(">ib", 10_000, 0))
        reader.take(4 + 4)  # Throttle time and the count, which is one.
        reader.text()
        return reader.number("h")

    def delete_topic(self, name: str) -> int:
        """DeleteTopics version 1; the error code."""
        body = struct.pack(">i", 1) + string(name) + struct.pack(">i", 10_000)
        reader = self.ask(DELETE_TOPICS, 1, body)
        reader.take(4 + 4)
        reader.text()
        return reader.number("h")

    def leaders(self, topic: str) -> dict[int, int]:
        """Metadata version 1: the leader of each partition; empty while the topic is unknown."""
        reader = self.ask(METADATA, 1, struct.pack(">i", 1) + string(topic))
        for _ in range(reader.number("i")):
            reader.number("i"), reader.text(), reader.number("i"), reader.text()
        reader.number("i")
        found: dict[int, int] = {}
        for _ in range(reader.number("i")):
            reader.number("h"), reader.text(), reader.number("b")
            for _ in range(reader.number("i")):
                reader.number("h")
                partition, leader = reader.number("i"), reader.number("i")
                reader.take(4 * reader.number("i")), reader.take(4 * reader.number("i"))
                found[partition] = leader
        return found

    def init_producer_id(self) -> tuple[int, int]:
        """InitProducerId version 0 without a transaction: (producer id, epoch)."""
        reader = self.ask(INIT_PRODUCER_ID, 0, string(None) + struct.pack(">i", 60_000))
        reader.number("i")
        error_code = reader.number("h")
        if error_code:
            raise WireError(f"InitProducerId answered error {error_code}")
        return reader.number("q"), reader.number("h")

    def produce(
        self, batches: Mapping[tuple[str, int], bytes], *, acks: int = 1, version: int = 7
    ) -> dict[tuple[str, int], ProduceAnswer]:
        """Produce and wait for the answer."""
        return read_produce(self.ask(PRODUCE, version, produce_body(batches, acks=acks)), version)

    def produce_one(self, topic: str, batch: bytes, *, partition: int = 0, acks: int = 1) -> int:
        """Produce one batch; its base offset. WireError names the error code."""
        answer = self.produce({(topic, partition): batch}, acks=acks)[topic, partition]
        if answer.error_code:
            raise WireError(f"Produce answered error {answer.error_code}")
        return answer.base_offset

    def fetch(self, topic: str, offset: int, *, partition: int = 0, **bounds: int) -> FetchAnswer:
        """Fetch from one partition; `bounds` as `fetch_body` takes them."""
        body = fetch_body({(topic, partition): offset}, **bounds)
        return read_fetch(self.ask(FETCH, 11, body))[topic, partition]

    def offset(self, topic: str, *, partition: int = 0, timestamp: int = LATEST) -> int:
        """ListOffsets version 1: the offset for a time, or of EARLIEST or LATEST."""
        body = struct.pack(">ii", -1, 1) + string(topic)
        reader = self.ask(LIST_OFFSETS, 1, body + struct.pack(">iiq", 1, partition, timestamp))
        reader.take(4)
        reader.text()
        reader.take(4 + 4)
        error_code, _timestamp, offset = reader.number("h"), reader.number("q"), reader.number("q")
        if error_code:
            raise WireError(f"ListOffsets answered error {error_code}")
        return offset


def read_produce(reader: Reader, version: int) -> dict[tuple[str, int], ProduceAnswer]:
    """The answer to Produce versions 3 to 7."""
    assert 3 <= version <= 7, "later versions carry more in each partition"
    found = {}
    for _ in range(reader.number("i")):
        topic = reader.text()
        for _ in range(reader.number("i")):
            partition, error_code = reader.number("i"), reader.number("h")
            base_offset = reader.number("q")
            reader.take(8 if version < 5 else 16)  # Append time, log start offset.
            found[topic, partition] = ProduceAnswer(error_code=error_code, base_offset=base_offset)
    return found


def read_fetch(reader: Reader) -> dict[tuple[str, int], FetchAnswer]:
    """The answer to Fetch version 11."""
    reader.take(4)
    error_code = reader.number("h")
    if error_code:
        raise WireError(f"Fetch answered error {error_code}")
    reader.take(4)
    found = {}
    for _ in range(reader.number("i")):
        topic = reader.text()
        for _ in range(reader.number("i")):
            partition, error_code = reader.number("i"), reader.number("h")
            high_watermark = reader.number("q")
            reader.take(16)  # Last stable offset, log start offset.
            reader.take(16 * max(reader.number("i"), 0))
            reader.take(4)  # Preferred read replica.
            records = reader.take(reader.number("i"))
            found[topic, partition] = FetchAnswer(
                error_code=error_code, high_watermark=high_watermark, records=records
            )
    return found


def partitions_of(topics: Sequence[str], partitions: int) -> list[tuple[str, int]]:
    """Every (topic, partition) of topics with the same number of partitions."""
    return [(topic, partition) for topic in topics for partition in range(partitions)]
