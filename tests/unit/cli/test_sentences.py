"""Codes from the wire become sentences."""

from penstock.cli.sentences import sentence
from penstock.errors import CommandError, GroupNotEmpty, RecordTooLarge


def test_a_code_without_words_gets_kafkas() -> None:
    assert sentence(GroupNotEmpty()) == "The group is not empty."


def test_a_code_nobody_worded_is_still_a_sentence() -> None:
    assert sentence(RecordTooLarge()) == "The broker answered MESSAGE_TOO_LARGE."


def test_the_words_of_an_error_are_kept() -> None:
    assert sentence(GroupNotEmpty("It has members.")) == "It has members."
    assert sentence(CommandError("No such file.")) == "No such file."
