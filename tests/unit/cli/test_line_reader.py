"""Lines as records, with every separator a user may choose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.line_reader import LineReader, LineRecord
from penstock.errors import CommandError

KEYS = {"parse.key": "true"}
ALL = {"parse.key": "true", "parse.headers": "TRUE"}


@given(st.binary())
def test_by_default_the_line_is_the_value(line: bytes) -> None:
    assert LineReader({}).parse(line) == LineRecord(line)


@pytest.mark.parametrize(
    ("properties", "line", "record"),
    [
        (KEYS, b"k\tv", LineRecord(b"v", b"k")),
        (KEYS, b"k\tv\tw", LineRecord(b"v\tw", b"k")),
        (KEYS, b"\t", LineRecord(b"", b"")),
        ({**KEYS, "key.separator": "::"}, b"k::v", LineRecord(b"v", b"k")),
        ({**KEYS, "ignore.error": "true"}, b"v", LineRecord(b"v")),
        (ALL, b"a:1,b:2\tk\tv", LineRecord(b"v", b"k", (("a", b"1"), ("b", b"2")))),
        ({"parse.headers": "true"}, b"a:1\tv", LineRecord(b"v", None, (("a", b"1"),))),
        (ALL, b"\tk\tv", LineRecord(b"v", b"k")),
        (
            {**ALL, "null.marker": "NULL"},
            b"a:NULL\tNULL\tNULL",
            LineRecord(None, None, (("a", None),)),
        ),
        ({**ALL, "null.marker": "NULL"}, b"NULL\tk\tv", LineRecord(b"v", b"k")),
        (
            {**ALL, "headers.delimiter": "|", "headers.separator": ";", "key.separator": "|"},
            b"a:1;b:2|k|v",
            LineRecord(b"v", b"k", (("a", b"1"), ("b", b"2"))),
        ),
        (
            {"parse.headers": "true", "headers.key.separator": "="},
            b"a=1=2\tv",
            LineRecord(b"v", None, (("a", b"1=2"),)),
        ),
    ],
)
def test_lines_are_split(properties: dict[str, str], line: bytes, record: LineRecord) -> None:
    assert LineReader(properties).parse(line) == record


@pytest.mark.parametrize(
    ("properties", "line", "sentence"),
    [
        (KEYS, b"nokey", "No key separator found on line number 2: 'nokey'"),
        (ALL, b"nothing", "No headers delimiter found on line number 2: 'nothing'"),
        (ALL, b"a\tk\tv", "No header key separator found in pair 'a' on line number 2"),
        ({**ALL, "null.marker": "N"}, b"N:1\tk\tv", r"Header keys should not be null \(line 2\)"),
    ],
)
def test_a_bad_line_is_told_with_its_number(
    properties: dict[str, str], line: bytes, sentence: str
) -> None:
    reader = LineReader(properties)
    reader.parse(b"a:1\tk\tv")
    with pytest.raises(CommandError, match=sentence):
        reader.parse(line)


@pytest.mark.parametrize(
    "properties",
    [
        {"parse.kye": "true"},
        {"headers.delimiter": ","},
        {"headers.separator": ":"},
        {"headers.key.separator": "\t"},
        {"null.marker": "\t"},
    ],
)
def test_properties_that_make_no_sense_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(CommandError):
        LineReader(properties)
