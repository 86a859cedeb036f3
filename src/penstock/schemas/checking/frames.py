"""What a broker and its decoding process say to each other, as bytes.

First the broker says which registry to ask, then one batch at a time, as the producer sent it; each
is answered with what is wrong with its records. Each side writes a size and then so many bytes.
"""

import json
import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from penstock.errors import CorruptRecord
from penstock.records.schema_check import RecordFlaw, SchemasAway

SIZE: Final = struct.Struct(">I")
_HEAD = struct.Struct(">BI")
_KEYS, _VALUES = 1, 2
_REASON_CHARACTERS_MAX = 300


class DecodeTask(NamedTuple):
    """A batch to look at, and which sides of its records."""

    sides: tuple[bool, ...]  # True: keys.
    skipped: frozenset[int]  # Places of records that are not to be looked at.
    batch: memoryview


def task_head(sides: Iterable[bool], batch_bytes: int, skipped: Sequence[int] = ()) -> bytes:
    """What stands in front of a batch."""
    flags = sum(_KEYS if is_key else _VALUES for is_key in set(sides))
    head = _HEAD.pack(flags, len(skipped)) + struct.pack(f">{len(skipped)}I", *skipped)
    return SIZE.pack(len(head) + batch_bytes) + head


def read_task(body: bytes) -> DecodeTask:
    """A task without its size."""
    flags, count = _HEAD.unpack_from(body)
    skipped = struct.unpack_from(f">{count}I", body, _HEAD.size)
    sides = tuple(is_key for is_key, bit in ((True, _KEYS), (False, _VALUES)) if flags & bit)
    return DecodeTask(sides, frozenset(skipped), memoryview(body)[_HEAD.size + 4 * count :])


def message(content: Any) -> bytes:
    """Anything JSON has a form for, behind its size."""
    body = json.dumps(content, separators=(",", ":")).encode()
    return SIZE.pack(len(body)) + body


def flaws_answer(flaws: Sequence[RecordFlaw]) -> bytes:
    """What is wrong with a batch."""
    return message({"flaws": [_short(flaw) for flaw in flaws]})


def away_answer(reason: str) -> bytes:
    """Nobody could tell what is wrong with a batch."""
    return message({"away": reason})


def corrupt_answer(reason: str) -> bytes:
    """The records of a batch cannot even be told apart."""
    return message({"corrupt": reason})


def read_answer(body: bytes) -> list[RecordFlaw]:
    """The flaws of a batch; raises SchemasAway or CorruptRecord."""
    answer = json.loads(body)
    if "away" in answer:
        raise SchemasAway(answer["away"])
    if "corrupt" in answer:
        raise CorruptRecord(answer["corrupt"])
    return [RecordFlaw(*one) for one in answer["flaws"]]


def _short(flaw: RecordFlaw) -> RecordFlaw:
    return flaw._replace(reason=flaw.reason[:_REASON_CHARACTERS_MAX])
