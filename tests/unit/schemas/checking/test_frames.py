"""What goes between a broker and its decoding process comes back as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptRecord
from penstock.records.schema_check import RecordFlaw, SchemasAway
from penstock.schemas.checking.frames import (
    SIZE,
    away_answer,
    corrupt_answer,
    flaws_answer,
    read_answer,
    read_task,
    task_head,
)

flaws = st.builds(
    RecordFlaw, st.integers(0, 1 << 31), st.booleans(), st.text(max_size=300), st.text(max_size=40)
)


@given(
    st.sets(st.booleans(), min_size=1),
    st.binary(max_size=100),
    st.lists(st.integers(0, 1 << 31), unique=True, max_size=5),
)
def test_a_task_comes_back(sides: set[bool], batch: bytes, skipped: list[int]) -> None:
    frame = task_head(sides, len(batch), skipped) + batch
    assert SIZE.unpack_from(frame) == (len(frame) - SIZE.size,)
    task = read_task(frame[SIZE.size :])
    assert (set(task.sides), bytes(task.batch)) == (sides, batch)
    assert task.skipped == set(skipped)


@given(st.lists(flaws))
def test_flaws_come_back(found: list[RecordFlaw]) -> None:
    assert read_answer(flaws_answer(found)[SIZE.size :]) == found


def test_a_long_reason_is_cut() -> None:
    (flaw,) = read_answer(flaws_answer([RecordFlaw(0, True, "x" * 5000, "E")])[SIZE.size :])
    assert len(flaw.reason) == 300


def test_that_nobody_can_tell_comes_back_as_what_it_is() -> None:
    with pytest.raises(SchemasAway, match="gone"):
        read_answer(away_answer("gone")[SIZE.size :])
    with pytest.raises(CorruptRecord, match="torn"):
        read_answer(corrupt_answer("torn")[SIZE.size :])
