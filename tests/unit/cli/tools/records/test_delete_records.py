"""kafka-delete-records: the file that says what goes."""

import pytest

from penstock.cli.tools.records.delete_records import parse_offsets
from penstock.client.values import TopicPartition
from penstock.errors import CommandError


def test_partitions_and_offsets_are_read() -> None:
    text = '{"partitions":[{"topic":"t","partition":0,"offset":5}],"version":1}'
    assert parse_offsets(text) == {TopicPartition("t", 0): 5}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "is not of the form"),
        ('{"partitions":[{"topic":"t"}]}', "is not of the form"),
        ('{"partitions":[],"version":2}', "Not supported version field value 2"),
        (
            '{"partitions":[{"topic":"t","partition":0,"offset":1},'
            '{"topic":"t","partition":0,"offset":2}]}',
            "duplicate topic partitions: t-0",
        ),
    ],
)
def test_a_bad_file_is_told(text: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        parse_offsets(text)
