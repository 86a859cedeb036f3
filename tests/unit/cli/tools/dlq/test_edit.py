"""What an edit changes of a dead letter, and what it leaves."""

import argparse
from pathlib import Path

import pytest

from penstock.cli.tools.dlq.documents import LetterDocuments
from penstock.cli.tools.dlq.edit import corrected
from penstock.cli.tools.dlq.replay import Returned
from penstock.client.headers import record_headers
from penstock.client.values import ConsumerRecord
from penstock.errors import CommandError
from penstock.schemas.dead_letters import Cause, cause_of, own_headers

CAUSE = Cause(topic="orders", partition=1, offset=9, message="bad")


def letter(cause: Cause = CAUSE) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord(
        topic="dead",
        partition=2,
        offset=5,
        timestamp_ms=7,
        timestamp_type="CreateTime",
        key=b"k",
        value=b"v",
        headers=record_headers((("trace", b"1"), ("user", b"a"), *cause.headers())),
    )


def edited(
    record: ConsumerRecord[bytes, bytes],
    documents: LetterDocuments | None = None,
    **changes: object,
) -> Returned:
    names = ("value", "value_file", "value_json", "key", "header", "drop_header", "schema_id")
    options = argparse.Namespace(**{**dict.fromkeys(names), "null_value": False, **changes})
    return corrected(record, cause_of(record.headers), 4, options, documents)


def test_what_is_not_named_stays() -> None:
    new = edited(letter(), key="new")
    assert (new.topic, new.partition, new.since, new.timestamp_ms) == ("dead", 2, 4, 7)
    assert (new.key, new.value) == (b"new", b"v")
    assert own_headers(new.headers) == [("trace", b"1"), ("user", b"a")]
    cause = cause_of(new.headers)
    assert cause == Cause(topic="orders", partition=1, offset=9, message="bad", edited="dead-2@5")


def test_a_second_edit_names_the_first(tmp_path: Path) -> None:
    file = tmp_path / "value"
    file.write_bytes(b"\x00\xff")
    new = edited(letter(Cause(topic="orders", edited="dead-2@1")), value_file=str(file))
    assert new.value == b"\x00\xff"
    assert [value for name, value in new.headers if name.endswith("edited")] == [b"dead-2@5"]


def test_headers_are_set_and_left_out() -> None:
    new = edited(letter(), header=["user=b=c", "more="], drop_header=["trace"])
    assert own_headers(new.headers) == [("user", b"b=c"), ("more", b"")]
    assert edited(letter(), null_value=True).value is None
    assert edited(letter(), value="").value == b""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"header": ["user"]}, "is not name=text"),
        ({"header": ["__connect.errors.topic=x"]}, "stays"),
        ({"value_file": "/nowhere/at/all"}, "cannot be read"),
        ({"value_json": "{"}, "is not JSON"),
        ({"value_json": "1"}, "cannot be written"),
    ],
)
def test_changes_that_cannot_be_made_are_refused(changes: dict[str, object], words: str) -> None:
    documents = LetterDocuments.of("http://127.0.0.1:1")
    with pytest.raises(CommandError, match=words):
        edited(letter(), documents, **changes)
