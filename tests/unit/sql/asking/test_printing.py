"""PRINT: guessed formats, and lines."""

import pytest

from penstock.sql.asking.printing import TopicPrinter, guessed, shown
from penstock.sql.asking.records import TopicRecord
from penstock.sql.language.statements import PrintTopic


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (None, None, "<null>"),
        (b'{"a":1}', "JSON", '{"a":1}'),
        (b"ann", "KAFKA_STRING", "ann"),
        ((7).to_bytes(8, "big"), "a schema registry's", "00 00 00 00 00 00 00 07"),
        ((-7).to_bytes(8, "big", signed=True), "KAFKA_BIGINT", "-7"),
        ((7).to_bytes(4, "big"), "KAFKA_INT", "7"),
        (b"\xff\x00\x01", "KAFKA_BYTES", "ff 00 01"),
    ],
)
def test_bytes_are_shown_as_what_they_look_like(
    data: bytes | None, kind: str | None, text: str
) -> None:
    assert guessed(data) == kind
    assert shown(data, kind) == text


def test_every_second_record_up_to_the_limit() -> None:
    printer = TopicPrinter(PrintTopic(topic="t", every=2, limit=2))
    lines = []
    for offset in range(10):
        lines += list(printer.lines(TopicRecord(0, offset, 1_000, b"k", str(offset).encode())))
    assert lines[:2] == ["Key format: KAFKA_STRING", "Value format: KAFKA_STRING"]
    assert lines[2] == "rowtime: 1970/01/01 00:00:01.000 Z, key: k, value: 0, partition: 0"
    assert [line.split("value: ")[1][0] for line in lines[2:]] == ["0", "2"]
    assert printer.is_done
