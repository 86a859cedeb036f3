"""Messages in, records out: positions behind each, and a run that goes on in a transaction."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.source_tasks import plain

from penstock.connect.connectors.postgres.changes_feed import ChangesFeed
from penstock.connect.connectors.postgres.column_types import PgType
from penstock.connect.connectors.postgres.pgoutput import RelationTold
from penstock.connect.connectors.postgres.positions import CapturePosition
from penstock.connect.connectors.postgres.settings import CaptureSettings
from penstock.connect.connectors.postgres.shapes import CatalogTable, PgTable, table_of
from penstock.connect.records import SourceRecord

SETTINGS = CaptureSettings.of(
    {
        "database.hostname": "db",
        "database.user": "u",
        "database.dbname": "shop",
        "topic.prefix": "p",
    }
)
RELATION = b"R\x00\x00\x00\x05public\x00t\x00d\x00\x01\x01id\x00\x00\x00\x00\x17\xff\xff\xff\xff"


def shape_of(relation: RelationTold) -> PgTable:
    catalog = CatalogTable(columns=(), key=("id",), identity="d")
    return table_of(relation, catalog, lambda oid: PgType(oid=oid, name="int4"), SETTINGS)


def row(number: int) -> bytes:
    text = str(number).encode()
    return b"\x00\x01t" + len(text).to_bytes(4, "big") + text


def transaction(lsn: int, *changes: bytes) -> list[bytes]:
    begin = b"B" + lsn.to_bytes(8, "big") + bytes(8) + b"\x00\x00\x00\x07"
    end = b"C\x00" + lsn.to_bytes(8, "big") + (lsn + 10).to_bytes(8, "big") + bytes(8)
    return [begin, RELATION, *changes, end]


def insert(number: int) -> bytes:
    return b"I\x00\x00\x00\x05N" + row(number)


def delete(number: int) -> bytes:
    return b"D\x00\x00\x00\x05K" + row(number)


def fed(messages: list[bytes], position: CapturePosition) -> list[SourceRecord]:
    feed = ChangesFeed(SETTINGS, shape_of, position)
    return [one for message in messages for one in feed.take(message, 0)]


def shown(record: SourceRecord) -> tuple[Any, ...]:
    return plain(record.key)["id"], None if record.value is None else plain(record.value)["op"]


def test_the_last_record_of_a_transaction_has_the_position_behind_it() -> None:
    records = fed(transaction(100, insert(1), insert(2)), CapturePosition(lsn_commit=90))
    assert [one.source_offset for one in records] == [
        {"lsn_commit": 90, "lsn": 100, "event": 1, "txId": 7, "ts_usec": 946684800000000},
        {"lsn_commit": 110, "txId": 7, "ts_usec": 946684800000000},
    ]


def test_a_record_of_a_delete_and_its_tombstone_have_one_position() -> None:
    records = fed(transaction(100, delete(1), insert(2)), CapturePosition(lsn_commit=90))
    assert [shown(one) for one in records] == [(1, "d"), (1, None), (2, "c")]
    assert records[0].source_offset == records[1].source_offset


@given(st.lists(st.lists(st.booleans(), max_size=5), max_size=5), st.integers(0, 30))
def test_wherever_it_goes_on_the_rest_is_told_and_nothing_else(
    sizes: list[list[bool]], stop: int
) -> None:
    parts = [
        transaction(100 * n, *(insert(k) if is_new else delete(k) for k, is_new in enumerate(one)))
        for n, one in enumerate(sizes, start=1)
    ]
    whole = fed([m for part in parts for m in part], CapturePosition(lsn_commit=1))
    offsets = [one.source_offset for one in whole]
    ends = [at for at in range(len(whole)) if offsets[at] not in offsets[at + 1 :]]
    if not ends:
        return
    last = ends[stop % len(ends)]
    offset = offsets[last]
    assert offset is not None
    position = CapturePosition.of_offset(offset)
    later = [m for n, part in enumerate(parts, 1) if 100 * n >= position.lsn_commit for m in part]
    again = fed(later, position)
    assert [shown(one) for one in again] == [shown(one) for one in whole[last + 1 :]]
    assert [one.source_offset for one in again] == offsets[last + 1 :]
