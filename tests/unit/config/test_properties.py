"""Properties files are read as Java reads them."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.config.properties import format_properties, parse_properties, read_properties
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("  a\t:\f1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=1", {"": "1"}),
        ("a==1", {"a": "=1"}),
        ("a : = 1", {"a": "= 1"}),
        ("a=1=2:3", {"a": "1=2:3"}),
        ("# a=1\n! b=2\n   # c=3\n\n \t\nd=4", {"d": "4"}),
        ("a=1#2", {"a": "1#2"}),
        ("a=1\\\n   ,2\\\n\t,3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a=1\\\n# b", {"a": "1# b"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=x\\ty\\nz\\r\\f\\q\\\\", {"a": "x\ty\nz\r\fq\\"}),
        ("a=\\u00e9\\u4E2d", {"a": "é中"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\x0b\x85b=2", {"a": "1\x0b\x85b=2"}),
        ("a=1\na=2", {"a": "2"}),
        ("\\#a=1", {"#a": "1"}),
    ],
)
def test_corners_of_the_format(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_an_escape_that_is_no_character_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("a=\\u12x4")
    with pytest.raises(ConfigError, match=r"server.properties: \\u12x4 is not a character"):
        read_properties(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the properties file .*/none: no such file"):
        read_properties(tmp_path / "none")


def test_a_file_in_the_encoding_of_old_java_is_read(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("broker.rack=Zürich".encode("latin-1"))
    assert read_properties(file) == {"broker.rack": "Zürich"}
    file.write_bytes("broker.rack=Zürich".encode())
    assert read_properties(file) == {"broker.rack": "Zürich"}


@given(st.dictionaries(st.text(), st.text()))
@example({"": "x"})
@example({"a\\": "\\", "b ": " c ", "#": "!", "\ud83d": "\ude00"})
def test_what_is_written_reads_back(values: dict[str, str]) -> None:
    readable = {
        key: value
        for key, value in values.items()
        if (key + value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        == key + value
    }
    assert parse_properties(format_properties(readable)) == readable


@given(st.text())
def test_any_text_is_read_or_refused_in_a_sentence(text: str) -> None:
    try:
        parse_properties(text)
    except ConfigError as error:
        assert "is not a character" in str(error)
