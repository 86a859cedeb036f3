"""Positions: wishes made before reading begins are kept, and what was read is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.consumer.positions import BEGINNING, END, STORED, Positions
from penstock.client.errors import IllegalStateError
from penstock.client.values import OffsetAndMetadata, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def positions(*assigned: TopicPartition) -> Positions:
    made = Positions(STORED)
    made.add(assigned)
    return made


def test_a_new_partition_starts_by_default() -> None:
    assert positions(A).start_of(A) == STORED
    assert positions(A).known(A) is None


def test_a_seek_is_where_reading_starts() -> None:
    made = positions(A)
    made.seek(A, 20)
    assert (made.start_of(A), made.known(A)) == (20, 20)


@pytest.mark.parametrize("word", [BEGINNING, END])
def test_a_seek_to_an_end_forgets_the_number(word: int) -> None:
    made = positions(A)
    made.note_consumed(A, 7, 3)
    made.seek(A, word)
    assert (made.start_of(A), made.known(A)) == (word, None)
    assert made.to_commit() == {}


def test_what_was_read_is_to_be_committed_with_its_epoch() -> None:
    made = positions(A, B)
    made.note_consumed(A, 7, 3)
    assert made.to_commit() == {A: OffsetAndMetadata(8, "", 3)}


def test_a_partition_that_went_and_came_starts_anew() -> None:
    made = positions(A, B)
    made.note_consumed(A, 7, None)
    made.pause([A])
    made.remove([A])
    assert made.assigned == {B}
    made.add([A])
    assert made.start_of(A) == STORED
    assert not made.paused


def test_a_partition_that_stays_keeps_its_position() -> None:
    made = positions(A)
    made.note_consumed(A, 7, None)
    made.add([A, B])
    assert made.start_of(A) == 8


@pytest.mark.parametrize(
    "call",
    [
        lambda made: made.seek(B, 1),
        lambda made: made.pause([B]),
        lambda made: made.known(B),
        lambda made: made.start_of(B),
    ],
)
def test_a_partition_of_others_is_refused(call: object) -> None:
    with pytest.raises(IllegalStateError, match="No current assignment for partition t-1"):
        call(positions(A))  # type: ignore[operator]


@given(st.lists(st.tuples(st.sampled_from(["read", "seek"]), st.integers(0, 1000)), max_size=20))
def test_the_last_word_counts(steps: list[tuple[str, int]]) -> None:
    made = positions(A)
    expected = None
    for step, offset in steps:
        if step == "read":
            made.note_consumed(A, offset, None)
            expected = offset + 1
        else:
            made.seek(A, offset)
            expected = offset
    assert made.known(A) == expected
