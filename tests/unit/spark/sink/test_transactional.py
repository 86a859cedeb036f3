"""Decisions about batches: noted, read back, and what follows from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.values import OffsetAndMetadata
from penstock.client.wire.transaction_control import OpenTransaction
from penstock.spark.sink.transactional import (
    BatchDecision,
    BatchOutcome,
    DeliveryError,
    QueryNames,
    decision_from,
    decision_notes,
    must_write,
    next_decision,
)

NAMES = QueryNames(prefix="p", query_id="q")


def transactions(*tasks: int) -> dict[int, OpenTransaction]:
    return {task: OpenTransaction(NAMES.transactional_id(task), task, 1, True) for task in tasks}


def decision(batch_id: int, *tasks: int, of: int = 3, adds: bool = False) -> BatchDecision:
    return BatchDecision(
        batch_id=batch_id, task_count=of, transactions=transactions(*tasks), adds_to_standing=adds
    )


def outcome(committed: set[int], aborted: set[int]) -> BatchOutcome:
    return BatchOutcome(committed=frozenset(committed), aborted=frozenset(aborted))


open_transactions = st.dictionaries(
    st.integers(0, 9999),
    st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 32767), st.booleans()),
    max_size=500,
)


@given(open_transactions, st.integers(0, 2**40), st.booleans(), st.integers(0, 5))
def test_a_decision_is_read_as_it_was_noted(
    given_: dict[int, tuple[int, int, bool]], batch_id: int, adds: bool, old_notes: int
) -> None:
    noted = BatchDecision(
        batch_id=batch_id,
        task_count=len(given_),
        transactions={
            task: OpenTransaction(NAMES.transactional_id(task), *values)
            for task, values in given_.items()
        },
        adds_to_standing=adds,
    )
    notes = decision_notes(noted)
    assert all(len(note) <= 4096 for note in notes)
    stored = [OffsetAndMetadata(-1, note) for note in notes]
    older = [OffsetAndMetadata(-1, f"{batch_id - 1};9;9;0;") for _ in range(old_notes)]
    assert decision_from([*older, *stored], NAMES) == noted


def test_notes_that_have_the_batch_as_their_offset_are_understood_too() -> None:
    older = OffsetAndMetadata(6, "1;3;0;0:0:1:1")
    assert decision_from([older], NAMES) == decision(6, 0)
    newer = [OffsetAndMetadata(-1, note) for note in decision_notes(decision(7, 0, 2))]
    assert decision_from([older, *newer], NAMES) == decision(7, 0, 2)


def test_a_decision_with_a_part_missing_is_not_trusted() -> None:
    notes = decision_notes(decision(4, *range(1000)))
    stored = [OffsetAndMetadata(-1, note) for note in notes[1:]]
    with pytest.raises(DeliveryError, match="p-q-decision holds"):
        decision_from(stored, NAMES)


def test_without_a_decision_tasks_write() -> None:
    assert must_write(None, None, batch_id=0, task=0)
    assert must_write(decision(3, 0), None, batch_id=4, task=0)


def test_a_committed_batch_is_not_written_again_by_any_task() -> None:
    done = outcome({0, 1}, set())
    for task in range(5):
        assert not must_write(decision(3, 0, 1), done, batch_id=3, task=task)


def test_of_a_half_committed_batch_only_the_aborted_tasks_write() -> None:
    half = outcome({0}, {1, 2})
    noted = decision(3, 0, 1, 2)
    assert [must_write(noted, half, batch_id=3, task=t) for t in range(3)] == [False, True, True]


def test_of_an_aborted_batch_every_task_writes_unless_parts_of_it_stand() -> None:
    gone = outcome(set(), {1})
    assert must_write(decision(3, 1), gone, batch_id=3, task=0)
    assert not must_write(decision(3, 1, adds=True), gone, batch_id=3, task=0)


def test_a_batch_behind_the_output_is_refused() -> None:
    with pytest.raises(DeliveryError, match=r"Batch 2 .* batch 3"):
        must_write(decision(3, 0), None, batch_id=2, task=0)


def test_a_new_batch_is_decided_as_it_was_written() -> None:
    found = next_decision(
        decision(3, 0), None, batch_id=4, task_count=3, written=transactions(0, 2)
    )
    assert found == decision(4, 0, 2)


def test_a_batch_without_rows_needs_no_decision() -> None:
    assert next_decision(None, None, batch_id=4, task_count=3, written={}) is None


def test_a_committed_batch_is_not_decided_again() -> None:
    done = outcome({0}, set())
    assert (
        next_decision(decision(4, 0), done, batch_id=4, task_count=3, written=transactions(1))
        is None
    )


def test_the_rewritten_part_of_a_batch_adds_to_what_stands() -> None:
    half = outcome({0}, {1, 2})
    found = next_decision(
        decision(4, 0, 1, 2), half, batch_id=4, task_count=3, written=transactions(1, 2)
    )
    assert found == decision(4, 1, 2, adds=True)


@pytest.mark.parametrize(("task_count", "tasks"), [(4, (1, 2)), (3, (1,)), (3, (0, 1, 2))])
def test_a_half_committed_batch_cannot_be_completed_by_other_tasks(
    task_count: int, tasks: tuple[int, ...]
) -> None:
    half = outcome({0}, {1, 2})
    with pytest.raises(DeliveryError, match=r"tasks 1, 2 of 3"):
        next_decision(
            decision(4, 0, 1, 2),
            half,
            batch_id=4,
            task_count=task_count,
            written=transactions(*tasks),
        )


def test_a_batch_that_was_aborted_whole_is_decided_anew() -> None:
    gone = outcome(set(), {0, 1})
    found = next_decision(
        decision(4, 0, 1), gone, batch_id=4, task_count=5, written=transactions(3)
    )
    assert found == decision(4, 3, of=5)
