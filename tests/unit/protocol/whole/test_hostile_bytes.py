"""Bytes from anywhere: decoding them gives a message or MalformedMessage, and costs little.

PENSTOCK_LONG=1 tries a million inputs instead of twenty thousand.
"""

import os
import random
import tracemalloc

import pytest
from tests.unit.protocol.samples import api_messages, sample

from penstock.protocol.apis import ApiKey
from penstock.protocol.headers import decode_request_header
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.list_groups import ListGroupsRequest
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from penstock.protocol.messages.produce import ProduceRequest
from penstock.protocol.primitives import MalformedMessage, encode_uvarint
from penstock.protocol.schema import Message

TARGETS = [(message, version) for message in api_messages() for version in message.versions]
INPUTS = 1_000_000 if os.environ.get("PENSTOCK_LONG") else 20_000
INPUTS_PER_TARGET = max(1, INPUTS // len(TARGETS))

# Lengths and counts that lie: negative, huge, just past a byte, overlong.
LIES = [
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x00",
    b"\x7f\xff",
    b"\xff\xff",
    b"\x00",
    b"\x80",
]


def decodes_or_is_malformed(message: type[Message], version: int, data: bytes) -> bool:
    try:
        message.decode(data, version)
    except MalformedMessage:
        return False
    return True


def mutated(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(changed))
        match rng.randrange(4):
            case 0 if changed:
                changed[at % len(changed)] = rng.randrange(256)
            case 1:
                changed[at:] = b""
            case 2:
                lie = rng.choice(LIES)
                changed[at : at + len(lie)] = lie
            case _:
                changed[at:at] = rng.randbytes(rng.randint(1, 4))
    return bytes(changed)


@pytest.mark.parametrize("message", list(api_messages()), ids=lambda m: m.__name__)
def test_damaged_messages_only_ever_decode_or_are_malformed(message: type[Message]) -> None:
    for version in message.versions:
        rng = random.Random(f"damage {message.__name__} {version} {INPUTS}")
        original = sample(message, version, rng).encode(version)
        for _ in range(INPUTS_PER_TARGET):
            decodes_or_is_malformed(message, version, mutated(original, rng))


def test_noise_only_ever_decodes_or_is_malformed() -> None:
    rng = random.Random(f"noise {INPUTS}")
    for _ in range(INPUTS // 4):
        message, version = rng.choice(TARGETS)
        decodes_or_is_malformed(message, version, rng.randbytes(rng.randint(0, 64)))


def test_noise_in_place_of_a_request_header_is_read_or_malformed() -> None:
    rng = random.Random(f"headers {INPUTS}")
    keys = [*ApiKey, -1, 1234]
    for _ in range(INPUTS // 4):
        key = rng.choice(keys).to_bytes(2, "big", signed=True)
        frame = memoryview(key + rng.randbytes(rng.randint(0, 24)))
        try:
            _, body = decode_request_header(frame)
        except MalformedMessage:
            continue
        assert body <= len(frame)


def test_what_was_decoded_from_damaged_bytes_can_be_encoded_again() -> None:
    rng = random.Random("again")
    survivors = 0
    for message, version in TARGETS:
        original = sample(message, version, rng).encode(version)
        damaged = mutated(original, rng)
        if decodes_or_is_malformed(message, version, damaged):
            survivors += 1
            decoded = message.decode(damaged, version)
            assert message.decode(decoded.encode(version), version).encode(version) == (
                decoded.encode(version)
            )
    assert survivors > 20, "too few survived for the test to mean anything"


HUGE = 2**31 - 2
PARTITION = bytes(6) + b"\0\0\0\1\0\1t\0\0\0\1" + bytes(4)  # A produce request up to its records.

COUNT, LENGTH = "a count exceeds the data", "a length runs past the end"

GIANTS = [
    # Counts of structs, of strings and of numbers, then the lengths of a record set and a string.
    (MetadataRequest, 1, HUGE.to_bytes(4, "big"), COUNT),
    (MetadataRequest, 9, encode_uvarint(HUGE), COUNT),
    (MetadataResponse, 9, bytes(4) + encode_uvarint(2**32 - 1), COUNT),
    (FetchRequest, 0, bytes(12) + HUGE.to_bytes(4, "big"), COUNT),
    (FetchRequest, 0, bytes(12) + b"\0\0\0\1\0\1t" + HUGE.to_bytes(4, "big"), COUNT),
    (OffsetFetchRequest, 1, b"\0\1g" + b"\0\0\0\1\0\1t" + HUGE.to_bytes(4, "big"), COUNT),
    (ListGroupsRequest, 4, encode_uvarint(HUGE), COUNT),
    (ProduceRequest, 0, PARTITION + HUGE.to_bytes(4, "big"), LENGTH),
    (ProduceRequest, 9, encode_uvarint(2**32 - 1), LENGTH),
]


@pytest.mark.parametrize(("message", "version", "data", "reason"), GIANTS)
def test_a_giant_count_or_length_is_refused_before_anything_is_allocated(
    message: type[Message], version: int, data: bytes, reason: str
) -> None:
    frame = data + bytes(100)
    with pytest.raises(MalformedMessage, match=reason):  # Also compiles the codec.
        message.decode(frame, version)
    tracemalloc.start()
    try:
        assert not decodes_or_is_malformed(message, version, frame)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 20_000


def test_giant_numbers_of_tagged_fields_end_with_the_bytes() -> None:
    request = MetadataRequest(topics=[]).encode(9)[:-1] + encode_uvarint(2**32 - 1) + bytes(1000)
    assert not decodes_or_is_malformed(MetadataRequest, 9, request)


MANY = 5_000_000
TOPIC = b"\0\1t" + (600).to_bytes(4, "big") + bytes(600 * 12)  # Its partitions' offsets.

# Requests that are what they say, but would take gigabytes: names, structs in structs, numbers.
CROWDS = [
    (ProduceRequest, 0, bytes(6) + MANY.to_bytes(4, "big") + bytes(6 * MANY)),
    (MetadataRequest, 1, MANY.to_bytes(4, "big") + bytes(2 * MANY)),
    (MetadataRequest, 9, encode_uvarint(MANY + 1) + b"\1\0" * MANY + bytes(4)),
    (ListOffsetsRequest, 1, b"\xff\xff\xff\xff" + (1_000).to_bytes(4, "big") + TOPIC * 1_000),
    (OffsetFetchRequest, 1, b"\0\1g\0\0\0\1\0\1t" + MANY.to_bytes(4, "big") + bytes(4 * MANY)),
]


@pytest.mark.parametrize(("message", "version", "data"), CROWDS)
def test_requests_of_too_many_elements_are_refused_before_they_are_allocated(
    message: type[Message], version: int, data: bytes
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage, match=r"more than 50?0,000 elements"):
            message.decode(data, version)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 200_000_000


def test_a_request_about_every_partition_of_a_huge_cluster_is_read() -> None:
    partitions = [ListOffsetsPartition(partition_index=index) for index in range(100)]
    topics = [ListOffsetsTopic(name=f"t{index}", partitions=partitions) for index in range(2_000)]
    data = ListOffsetsRequest(topics=topics).encode(7)
    assert len(ListOffsetsRequest.decode(data, 7).topics) == 2_000


def test_answers_are_as_long_as_brokers_make_them() -> None:
    topics = [MetadataResponseTopic(name="t", partitions=[])] * 600_000
    data = MetadataResponse(topics=topics).encode(9)
    assert len(MetadataResponse.decode(data, 9).topics) == 600_000
