"""The extension and the Python it stands for give the same answers, also to hostile bytes.

PENSTOCK_LONG=1 tries fifty times as many.
"""

import os
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.batches import batch
from tests.unit.protocol.samples import api_messages, sample

from penstock.errors import ProtocolError
from penstock.native import NativeModule
from penstock.protocol import codecs
from penstock.protocol.apis import ApiKey, first_flexible_versions
from penstock.protocol.codecs import decoder_for, encoder_for, part_encoder_for
from penstock.protocol.headers import RequestHeader, encode_request_header, read_request_header
from penstock.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.protocol.schema import Message
from penstock.records.batch import (
    BatchHeader,
    build_batch,
    check_batch,
    gather_key_values,
    read_checked,
)
from penstock.records.checksum import crc32c
from penstock.records.compression import Codec
from penstock.records.produced import read_only_batch
from penstock.records.record import Record

WRITTEN_RECORDS_MAX = 65536  # As codec.c has it.
EXAMPLES = 50 if os.environ.get("PENSTOCK_LONG") else 1
TARGETS = [(message, version) for message in api_messages() for version in message.versions]
STRANGE = (None, True, -1, 1 << 15, 1 << 31, 1 << 63, 0.5, "", "\ud800", b"", b"x" * 16, [], [None])


def outcome(work: Callable[..., Any], *args: Any) -> Any:
    """What a function gives or raises, to be compared."""
    try:
        return work(*args)
    except (ProtocolError, ValueError, TypeError, AttributeError, IndexError) as error:
        return type(error), str(error)
    except Exception as error:  # noqa: BLE001 - struct.error, which has no other name here
        return type(error)


def mutations(data: bytes, rng: random.Random) -> Iterator[bytes]:
    """The bytes, cut short and with one of them changed."""
    yield data
    for _ in range(4 * EXAMPLES):
        changed = bytearray(data)
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice([0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF])
        yield bytes(changed)
        yield bytes(changed[: rng.randrange(len(changed) + 1)])


def test_every_message_is_read_as_python_reads_it(native: NativeModule) -> None:
    for message, version in TARGETS:
        rng = random.Random(f"{message.__name__} {version}")
        ours, twin = decoder_for(message, version, native), decoder_for(message, version, None)
        for original in (message(), sample(message, version, rng)):
            for data in mutations(original.encode(version), rng):
                view = memoryview(data)
                read = outcome(ours, view, 0, len(view))
                assert read == outcome(twin, view, 0, len(view)), (message, version, data)


def test_every_message_is_written_as_python_writes_it(native: NativeModule) -> None:
    for message, version in TARGETS:
        rng = random.Random(f"{message.__name__} {version}")
        writers = [
            (make(message, version, native), make(message, version, None))
            for make in (encoder_for, part_encoder_for)
        ]
        for original in (message(), sample(message, version, rng)):
            for changed in with_strange_values(original, rng):
                for ours, twin in writers:
                    assert outcome(ours, changed) == outcome(twin, changed), (changed, version)


def with_strange_values(message: Message, rng: random.Random) -> Iterator[Message]:
    """The message, and with each field in turn something that may not belong there."""
    yield message
    for name in message.fields:  # Also those that the version has no place for.
        kept = getattr(message, name)
        setattr(message, name, rng.choice(STRANGE))
        yield message
        setattr(message, name, kept)


def test_a_message_without_all_its_fields_is_refused_alike(native: NativeModule) -> None:
    unmade = object.__new__(ProduceResponse)
    ours, twin = encoder_for(ProduceResponse, 9, native), encoder_for(ProduceResponse, 9, None)
    assert outcome(ours, unmade) == outcome(twin, unmade)


class Slice:
    """Records that lie in a file: all that is known of them here is how many bytes they are."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


@pytest.mark.parametrize("version", FetchResponse.versions)
@pytest.mark.parametrize("sizes", [(0,), (100,), (1, 0, 1 << 20), (3,) * 40])
def test_records_in_a_file_stand_between_the_bytes_as_they_are(
    native: NativeModule, version: int, sizes: tuple[int, ...]
) -> None:
    found = [PartitionData(partition_index=i, records=Slice(n)) for i, n in enumerate(sizes)]
    found.append(PartitionData(partition_index=99, records=b"in memory"))
    found.append(PartitionData(partition_index=100, records=memoryview(b"a view")))
    for kept in (found, found[:-1]):  # Views are Python's to write.
        response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=kept)])
        ours, twin = (part_encoder_for(FetchResponse, version, one) for one in (native, None))
        assert ours(response) == twin(response)
        parts = [part for part in ours(response) if isinstance(part, Slice)]
        assert parts == [data.records for data in kept if len(data.records) and data in found[:-2]]


@pytest.mark.parametrize("beyond", [0, 1])
def test_many_bytes_of_records_are_left_to_python_which_copies_them_once(
    native: NativeModule, monkeypatch: pytest.MonkeyPatch, beyond: int
) -> None:
    for name in ("compile_encoder", "compile_part_encoder"):
        monkeypatch.setattr(codecs, name, lambda _kind, _version: lambda _request: "the twin's")
    data = PartitionProduceData(index=0, records=bytes(WRITTEN_RECORDS_MAX + beyond))
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[data])])
    for make in (encoder_for, part_encoder_for):
        write: Any = make(ProduceRequest, 9, native)
        assert (write(request) == "the twin's") is bool(beyond)


@pytest.mark.parametrize("partitions", [1, 2000])  # The second is more than is read natively.
def test_records_are_views_on_the_frame(native: NativeModule, partitions: int) -> None:
    data = [PartitionProduceData(index=i, records=b"batch") for i in range(partitions)]
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    frame = memoryview(bytearray(b"??" + request.encode(9)))
    read, end = decoder_for(ProduceRequest, 9, native)(frame, 2, len(frame))
    assert (read, end) == (request, len(frame))
    assert all(one.records.obj is frame.obj for one in read.topic_data[0].partition_data)


@pytest.mark.parametrize(
    "arguments",
    [
        (b"\0" * 40, 0, 40),
        (memoryview(bytes(40)), -1, 40),
        (memoryview(bytes(40)), 0, 1 << 40),
        (memoryview(bytes(40)), "0", 40),
        (memoryview(bytes(80))[::2], 0, 40),
        (memoryview(bytes(160)).cast("i"), 0, 40),
    ],
)
def test_what_is_not_a_view_on_bytes_is_left_to_python(
    native: NativeModule, arguments: tuple[Any, ...]
) -> None:
    ours, twin = decoder_for(ProduceRequest, 7, native), decoder_for(ProduceRequest, 7, None)
    assert outcome(ours, *arguments) == outcome(twin, *arguments)


@settings(max_examples=300 * EXAMPLES, deadline=None)
@given(
    key=st.sampled_from([*ApiKey, -1, 127, 128, 9999]),
    version=st.integers(-2, 20),
    client_id=st.none() | st.text(max_size=20),
    tail=st.binary(max_size=6),
    cut=st.none() | st.integers(0, 40),
)
def test_headers_are_read_as_python_reads_them(
    native: NativeModule,
    key: int,
    version: int,
    client_id: str | None,
    tail: bytes,
    cut: int | None,
) -> None:
    ours = native.header_decoder(RequestHeader, first_flexible_versions(128), read_request_header)
    data = memoryview((encode_request_header(key, version, -7, client_id) + tail)[:cut])
    found = outcome(ours, data)
    assert found == outcome(read_request_header, data)
    if isinstance(found[0], tuple):
        assert type(found[0]) is RequestHeader


@settings(max_examples=300 * EXAMPLES, deadline=None)
@given(
    values=st.lists(
        st.binary(max_size=2000) | st.integers(0, 40_000).map(bytes), min_size=1, max_size=4
    ),
    change=st.none() | st.tuples(st.integers(0, 60), st.integers(0, 255)),
    cut=st.none() | st.integers(0, 80),
    more=st.binary(max_size=3),
)
def test_batches_are_checked_as_python_checks_them(
    native: NativeModule,
    values: list[bytes],
    change: tuple[int, int] | None,
    cut: int | None,
    more: bytes,
) -> None:
    data = bytearray(batch(values))
    if change is not None:
        data[change[0]] = change[1]
    view = memoryview((data + more)[:cut])
    ours = native.batch_checker(BatchHeader, read_checked)
    found = outcome(ours, view)
    assert found == outcome(read_checked, view)
    assert outcome(ours, view, 1) == outcome(read_checked, view, 1)
    assert change is not None or cut is not None or type(found) is BatchHeader


HEADER = struct.Struct(">qiibIhiqqqhii")
_ODD = {"attributes": 5, "last_offset_delta": 6, "producer_id": 9, "producer_epoch": 10}
_ODD |= {"base_sequence": 11, "record_count": 12}


@settings(max_examples=600 * EXAMPLES, deadline=None)
@given(
    fields=st.dictionaries(
        st.sampled_from(sorted(_ODD)),
        st.integers(-2, 70) | st.sampled_from([(1 << 15) - 1]),
        max_size=3,
    ),
    count=st.integers(1, 4),
    codec=st.sampled_from(Codec),
    beyond=st.binary(max_size=2),
    cut=st.none() | st.integers(0, 90),
    magic=st.sampled_from([2, 2, 2, 2, 1, 3]),
)
def test_what_producers_send_is_judged_as_python_judges_it(
    native: NativeModule,
    fields: dict[str, int],
    count: int,
    codec: Codec,
    beyond: bytes,
    cut: int | None,
    magic: int,
) -> None:
    batch = build_batch([Record(i, 1, b"k", b"v" * 9) for i in range(count)], codec=codec)
    header = list(HEADER.unpack_from(batch))
    for name, value in fields.items():
        header[_ODD[name]] = value
    HEADER.pack_into(batch, 0, *header)
    struct.pack_into(">bI", batch, 16, magic, crc32c(memoryview(batch)[21:]))
    data = memoryview((batch + beyond)[:cut])
    ours = native.produced_checker(BatchHeader, read_only_batch)
    found = outcome(ours, data)
    assert found == outcome(read_only_batch, data)
    if not (fields or beyond) and cut is None and magic == 2:
        assert type(found) is BatchHeader


SMALL_BYTES = st.binary(max_size=200) | st.integers(100, 3000).map(bytes)


@settings(max_examples=300 * EXAMPLES, deadline=None)
@given(
    records=st.lists(st.tuples(SMALL_BYTES, st.none() | SMALL_BYTES), max_size=9),
    moment=st.sampled_from([0, -1, 1_700_000_000_000, -(1 << 63), (1 << 63) - 1, 1 << 63]),
    codec=st.sampled_from([Codec.NONE, Codec.GZIP]),
    producer=st.sampled_from(
        [(-1, -1), (5, 3), (1 << 40, (1 << 15) - 1), (1 << 63, 0), (1, 1 << 15)]
    ),
)
def test_batches_are_built_as_python_builds_them(
    native: NativeModule,
    records: list[tuple[bytes, bytes | None]],
    moment: int,
    codec: Codec,
    producer: tuple[int, int],
) -> None:
    ours = native.batch_builder(BatchHeader, gather_key_values)
    found = outcome(ours, records, moment, codec, *producer)
    assert found == outcome(gather_key_values, records, moment, codec, *producer)
    if isinstance(found, tuple) and isinstance(found[0], tuple):
        assert [type(part) for part in found] == [BatchHeader, bytearray]
        assert check_batch(memoryview(found[1])) == found[0]


@pytest.mark.parametrize("count", [63, 64, 65, 1024, 1025, 8192, 8193])  # Around lengths that grow.
def test_long_batches_are_built_as_python_builds_them(native: NativeModule, count: int) -> None:
    ours = native.batch_builder(BatchHeader, gather_key_values)
    for records in ([(b"", None)] * count, [(bytes(count), bytes(count))], [(b"k", b"v")] * count):
        wanted = (records, 7, Codec.NONE, -1, -1)
        assert ours(*wanted) == gather_key_values(*wanted)


@pytest.mark.parametrize(
    "records",
    [
        [],
        ((b"k", b"v"),),
        [[b"k", b"v"]],
        [(b"k",)],
        [(b"k", b"v", b"w")],
        [(None, b"v")],
        [(bytearray(b"k"), memoryview(b"v"))],
        [("k", b"v")],
        [(b"k", 1)],
        None,
    ],
)
def test_what_is_no_list_of_pairs_of_bytes_is_left_to_python(
    native: NativeModule, records: Any
) -> None:
    ours = native.batch_builder(BatchHeader, gather_key_values)
    wanted = (records, 7, Codec.NONE, -1, -1)
    assert outcome(ours, *wanted) == outcome(gather_key_values, *wanted)
    assert outcome(ours, records) == outcome(gather_key_values, records)
