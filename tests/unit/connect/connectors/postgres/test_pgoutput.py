"""Messages of pgoutput, as a server of release 15 wrote them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.changes.envelope import UNSENT
from penstock.connect.connectors.postgres.pgoutput import (
    RelationTold,
    RowChanged,
    SentColumn,
    TablesTruncated,
    TransactionBegun,
    TransactionEnded,
    decode_message,
    lsn_of,
    lsn_text,
)
from penstock.connect.errors.kinds import ConnectError

RELATION = (
    b"R\x00\x00\x40\x01public\x00orders\x00d\x00\x02"
    b"\x01id\x00\x00\x00\x00\x17\xff\xff\xff\xff"
    b"\x00note\x00\x00\x00\x04\x13\x00\x00\x00\x0d"
)


def value(text: str) -> bytes:
    data = text.encode()
    return b"t" + len(data).to_bytes(4, "big") + data


def test_a_transaction_begins_and_ends() -> None:
    begin = b"B" + (0x16B374D848).to_bytes(8, "big") + (0).to_bytes(8, "big") + b"\x00\x00\x02\xd5"
    assert decode_message(begin) == TransactionBegun(0x16B374D848, 946_684_800_000_000, 725)
    end = b"C\x00" + (100).to_bytes(8, "big") + (148).to_bytes(8, "big") + bytes(8)
    assert decode_message(end) == TransactionEnded(100, 148)


def test_a_table_tells_its_shape() -> None:
    columns = (SentColumn("id", 23, -1, True), SentColumn("note", 1043, 13, False))
    assert decode_message(RELATION) == RelationTold(16385, "public", "orders", "d", columns)


def test_rows_come_with_nulls_texts_and_values_that_were_not_sent() -> None:
    oid = b"\x00\x00\x40\x01"
    row = b"\x00\x03" + value("7") + b"n" + b"u"
    insert = decode_message(b"I" + oid + b"N" + row)
    assert insert == RowChanged(16385, None, ("7", None, UNSENT), is_insert=True)
    plain = decode_message(b"U" + oid + b"N" + row)
    assert plain == RowChanged(16385, None, ("7", None, UNSENT))
    old = b"\x00\x03" + value("6") + b"nn"
    keyed = decode_message(b"U" + oid + b"K" + old + b"N" + row)
    assert keyed == RowChanged(16385, ("6", None, None), ("7", None, UNSENT))
    whole = decode_message(b"D" + oid + b"O" + old)
    assert whole == RowChanged(16385, ("6", None, None), None, old_is_whole=True)


def test_several_tables_are_truncated_at_once() -> None:
    message = b"T\x00\x00\x00\x02\x01\x00\x00\x00\x07\x00\x00\x00\x09"
    assert decode_message(message) == TablesTruncated((7, 9))


def test_messages_without_consequence_are_passed_over() -> None:
    for kind in (b"O", b"Y", b"M"):
        assert decode_message(kind + b"whatever") is None


@given(st.binary(max_size=60))
def test_bytes_that_are_no_message_are_refused_in_words(data: bytes) -> None:
    try:
        decode_message(data)
    except ConnectError as error:
        assert "pgoutput" in str(error)


def test_a_message_that_is_cut_is_refused() -> None:
    whole = b"I\x00\x00\x40\x01N\x00\x01" + value("seven")
    for end in range(len(whole)):
        with pytest.raises(ConnectError):
            decode_message(whole[:end])


@given(st.integers(0, 2**64 - 1))
def test_positions_are_written_as_postgresql_does(lsn: int) -> None:
    assert lsn_of(lsn_text(lsn)) == lsn
    assert lsn_text(0x16B374D848) == "16/B374D848"
