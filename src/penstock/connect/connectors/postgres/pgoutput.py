"""The messages of PostgreSQL's plug-in pgoutput, version 1, as values: a pure function of bytes.

Values of columns are texts, as the types' output functions write them, None for null and UNSENT for
a large value that did not change. Messages that change nothing for us (origins, names of types) are
None.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.connect.connectors.changes.envelope import UNSENT
from penstock.connect.errors.kinds import ConnectError

SentRow = tuple[Any, ...]
EPOCH_US = 946_684_800_000_000  # PostgreSQL counts from 2000.
_BEGIN = struct.Struct(">QqI")
_COMMIT = struct.Struct(">BQQq")
_RELATION = struct.Struct(">I")
_COLUMN_END = struct.Struct(">Ii")
_SHORT = struct.Struct(">H")
_INT = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class TransactionBegun:
    """A transaction that was committed; all of its changes follow."""

    commit_lsn: int
    committed_us: int  # Since 1970.
    xid: int


@dataclass(frozen=True, slots=True)
class TransactionEnded:
    """After it, nothing of the transaction is to come; the next one is read from `end_lsn` on."""

    commit_lsn: int
    end_lsn: int


@dataclass(frozen=True, slots=True)
class SentColumn:
    """A column as a relation's message tells it."""

    name: str
    type_oid: int
    modifier: int
    in_identity: bool  # Whether old rows have it.


@dataclass(frozen=True, slots=True)
class RelationTold:
    """The shape of a table, before its first change and after each change of its shape."""

    oid: int
    schema: str
    table: str
    identity: str  # d: primary key, n: nothing, f: all columns, i: an index.
    columns: tuple[SentColumn, ...]


@dataclass(frozen=True, slots=True)
class RowChanged:
    """An insert (no old row), an update, or a delete (no new row)."""

    oid: int
    old: SentRow | None
    new: SentRow | None
    old_is_whole: bool = False  # Otherwise the old row has the columns of the identity alone.
    is_insert: bool = False


@dataclass(frozen=True, slots=True)
class TablesTruncated:
    """Tables that were emptied together."""

    oids: tuple[int, ...]


PgMessage = TransactionBegun | TransactionEnded | RelationTold | RowChanged | TablesTruncated


def decode_message(data: bytes) -> PgMessage | None:
    """The message; None for one without consequence. ConnectError: it is none of pgoutput's."""
    try:
        decoder = _DECODERS[data[0]]
        return None if decoder is None else decoder(data)
    except (IndexError, KeyError, struct.error, ValueError) as error:
        raise ConnectError(f"A message of pgoutput cannot be read: {data[:40]!r}") from error


def lsn_of(text: str) -> int:
    """The number of `16/B374D848`."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def lsn_text(lsn: int) -> str:
    """As PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def _begin(data: bytes) -> TransactionBegun:
    lsn, micros, xid = _BEGIN.unpack_from(data, 1)
    return TransactionBegun(lsn, micros + EPOCH_US, xid)


def _commit(data: bytes) -> TransactionEnded:
    _, lsn, end, _ = _COMMIT.unpack_from(data, 1)
    return TransactionEnded(lsn, end)


def _relation(data: bytes) -> RelationTold:
    (oid,) = _RELATION.unpack_from(data, 1)
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    identity, (count,) = chr(data[at]), _SHORT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        name, at = _text(data, at + 1)
        type_oid, modifier = _COLUMN_END.unpack_from(data, at)
        at += 8
        columns.append(SentColumn(name, type_oid, modifier, bool(flags & 1)))
    return RelationTold(oid, schema or "pg_catalog", table, identity, tuple(columns))


def _insert(data: bytes) -> RowChanged:
    (oid,) = _INT.unpack_from(data, 1)
    new, _ = _row(data, 6)
    return RowChanged(oid, None, new, is_insert=True)


def _update(data: bytes) -> RowChanged:
    (oid,) = _INT.unpack_from(data, 1)
    old, at, kind = None, 5, data[5:6]
    if kind in (b"K", b"O"):
        old, at = _row(data, 6)
    new, _ = _row(data, at + 1)
    return RowChanged(oid, old, new, kind == b"O")


def _delete(data: bytes) -> RowChanged:
    (oid,) = _INT.unpack_from(data, 1)
    old, _ = _row(data, 6)
    return RowChanged(oid, old, None, data[5:6] == b"O")


def _truncate(data: bytes) -> TablesTruncated:
    (count,) = _INT.unpack_from(data, 1)
    return TablesTruncated(struct.unpack_from(f">{count}I", data, 6))


def _row(data: bytes, at: int) -> tuple[SentRow, int]:
    (count,) = _SHORT.unpack_from(data, at)
    at += 2
    values: list[Any] = []
    length_at, size = _INT.unpack_from, len(data)
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == 116:  # t: a text.
            end = at + 4 + length_at(data, at)[0]
            if end > size:
                raise ValueError("a value goes on after the end of its message")
            values.append(data[at + 4 : end].decode())
            at = end
        elif kind in (110, 117):  # n: null, u: unchanged.
            values.append(None if kind == 110 else UNSENT)
        else:
            raise ValueError(f"a value of kind {kind}")
    return tuple(values), at


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


_DECODERS: dict[int, Callable[[bytes], PgMessage] | None] = {
    ord("B"): _begin,
    ord("C"): _commit,
    ord("R"): _relation,
    ord("I"): _insert,
    ord("U"): _update,
    ord("D"): _delete,
    ord("T"): _truncate,
    ord("O"): None,  # Where a transaction of another server came from.
    ord("Y"): None,  # The name of a type; types are looked up in the catalog.
    ord("M"): None,  # A message that a program wrote into the log.
}
