"""Commands as records, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.commands.applying import COMMANDS
from penstock.sql.language.parse import parse_one
from penstock.sql.running.command_records import (
    CommandRecord,
    CommandRefused,
    command_id,
    read_command,
)

words = st.text(max_size=20)


@given(words, words, st.dictionaries(words, words, max_size=4))
def test_a_command_is_read_as_it_was_written(
    name: str, statement: str, properties: dict[str, str]
) -> None:
    command = CommandRecord(id=name, statement=statement, properties=properties)
    assert read_command(*command.encoded()) == command


def test_a_record_without_a_value_means_nothing() -> None:
    assert read_command(b"writer", None) is None


@given(st.binary(max_size=60))
def test_bytes_that_are_no_command_are_refused(data: bytes) -> None:
    with pytest.raises(CommandRefused):
        read_command(b"x", data)


def test_a_command_of_a_later_version_is_refused() -> None:
    with pytest.raises(CommandRefused, match="version 9"):
        read_command(b"x", b'{"version": 9, "statement": ""}')


def test_a_command_larger_than_brokers_take_is_refused() -> None:
    with pytest.raises(CommandRefused):
        CommandRecord(id="x", statement="x" * 1_000_000).encoded()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("CREATE TYPE a AS INT;", "type/A/create"),
        ("DROP TABLE a;", "table/A/drop"),
        ("ALTER STREAM a ADD COLUMN b INT;", "stream/A/alter"),
        ("TERMINATE ALL;", "terminate/ALL/execute"),
        ("PAUSE q_1;", "pause/Q_1/execute"),
    ],
)
def test_commands_are_called_as_in_ksqldb(text: str, wanted: str) -> None:
    statement = parse_one(text)
    assert isinstance(statement, COMMANDS)
    assert command_id(statement) == wanted
