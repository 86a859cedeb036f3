"""Codes from the wire become sentences."""

from collections.abc import Callable

import pytest

from penstock.cli.sentences import sentence, told_after
from penstock.errors import (
    CommandError,
    GroupNotEmpty,
    PenstockError,
    ProtocolError,
    RecordTooLarge,
)


def test_a_code_without_words_gets_kafkas() -> None:
    assert sentence(GroupNotEmpty()) == "The group is not empty."


def test_a_code_nobody_worded_is_still_a_sentence() -> None:
    assert sentence(RecordTooLarge()) == "The broker answered MESSAGE_TOO_LARGE."


def test_the_words_of_an_error_are_kept() -> None:
    assert sentence(GroupNotEmpty("It has members.")) == "It has members."
    assert sentence(CommandError("No such file.")) == "No such file."


@pytest.mark.parametrize(
    ("words", "told"), [(sentence, "The group is not empty."), (str, "NON_EMPTY_GROUP")]
)
def test_a_tool_tells_what_went_wrong_after_its_own_opening(
    words: Callable[[PenstockError], str], told: str
) -> None:
    with pytest.raises(CommandError) as ended, told_after("Error: ", words=words):
        raise GroupNotEmpty
    assert str(ended.value) == f"Error: {told}"


def test_errors_of_another_kind_have_no_opening() -> None:
    with pytest.raises(CommandError) as ended, told_after("Error: ", errors=ProtocolError):
        raise CommandError("No such file.")
    assert str(ended.value) == "No such file."
