"""The loop of a decoding process, on streams of the test's own."""

import io

import pytest
from tests.unit.schemas.checking.samples import JSON, MemoryRegistry, framed

from penstock.errors import CorruptRecord
from penstock.records.batch import HEADER_BYTES, Record, build_batch, read_header, seal
from penstock.records.compression import Codec
from penstock.records.schema_check import RecordFlaw, SchemasAway
from penstock.schemas.checking.decoders import SchemaDecoders
from penstock.schemas.checking.frames import SIZE, read_answer, task_head
from penstock.schemas.checking.worker import serve

GOOD, BAD = framed(JSON, b'{"age": 1}'), framed(JSON, b"{}")


def answers_to(*frames: bytes, registry: MemoryRegistry | None = None) -> list[bytes]:
    """The bodies of what the loop answers."""
    out = io.BytesIO()
    decoders = SchemaDecoders(registry or MemoryRegistry())
    serve(io.BytesIO(b"".join(frames)), out, decoders, limit_s=60)
    data, bodies = out.getvalue(), []
    while data:
        (size,) = SIZE.unpack_from(data)
        bodies.append(data[SIZE.size : SIZE.size + size])
        data = data[SIZE.size + size :]
    return bodies


def task(*records: tuple[bytes | None, bytes | None], sides: tuple[bool, ...] = (False,)) -> bytes:
    made = [Record(at, 0, key, value) for at, (key, value) in enumerate(records)]
    batch = bytes(build_batch(made, codec=Codec.ZSTD))
    return task_head(sides, len(batch)) + batch


def test_each_batch_is_answered_with_its_flaws() -> None:
    first = task((b"k", GOOD), (b"k", BAD), (b"k", None))
    second = task((BAD, GOOD), (GOOD, BAD), (None, GOOD), sides=(True, False))
    one, two = map(read_answer, answers_to(first, second))
    assert [(flaw.batch_index, flaw.is_key) for flaw in one] == [(1, False)]
    assert [(flaw.batch_index, flaw.is_key) for flaw in two] == [(0, True), (1, False)]
    assert one[0] == RecordFlaw(1, False, one[0].reason, "penstock.schemas.errors.DecodeError")
    assert "age" in one[0].reason


def test_what_is_known_to_fail_is_not_looked_at() -> None:
    batch = bytes(build_batch([Record(at, 0, b"k", BAD) for at in range(3)]))
    (body,) = answers_to(task_head((False,), len(batch), [0, 2]) + batch)
    assert [flaw.batch_index for flaw in read_answer(body)] == [1]


def test_a_registry_that_is_away_is_told() -> None:
    registry = MemoryRegistry()
    registry.is_away = True
    (body,) = answers_to(task((b"k", GOOD)), registry=registry)
    with pytest.raises(SchemasAway):
        read_answer(body)


def test_a_batch_that_cannot_be_read_is_told_and_the_next_one_served() -> None:
    batch = build_batch([Record(0, 0, b"k", GOOD)])
    torn = seal(read_header(batch), batch[HEADER_BYTES:-3])
    one, two = answers_to(task_head((False,), len(torn)) + torn, task((b"k", GOOD)))
    with pytest.raises(CorruptRecord):
        read_answer(one)
    assert read_answer(two) == []


def test_a_frame_that_breaks_off_ends_the_loop() -> None:
    assert answers_to(task((b"k", GOOD))[:-1]) == []
    assert answers_to(b"\0\0") == []
