"""The life of one transactional id, told event by event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.transactions.script import check

from penstock.transactions import rules
from penstock.transactions.transaction import Transaction, TransactionState


def test_a_transaction_commits_and_the_next_keeps_its_epoch() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        add 1/0 t-0 t-1 => ok                       | Ongoing 1/0 t-0 t-1
        add 1/0 t-0 => ok                           | Ongoing 1/0 t-0 t-1
        verify 1/0 t-0 u-0 => ok TransactionAbortable| Ongoing 1/0 t-0 t-1
        commit 1/0 => 1/0                           | PrepareCommit 1/0 t-0 t-1
        complete => ok                              | CompleteCommit 1/0
        add 1/0 t-2 => ok                           | Ongoing 1/0 t-2
        abort 1/0 => 1/0                            | PrepareAbort 1/0 t-2
        complete => ok                              | CompleteAbort 1/0
        add 1/0 t-3 => ok                           | Ongoing 1/0 t-3
        """
    )


def test_the_same_end_may_be_asked_for_twice_but_not_another() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        commit 1/0 => InvalidTxnState               | Empty 1/0
        abort 1/0 => InvalidTxnState                | Empty 1/0
        add 1/0 t-0 => ok                           | Ongoing 1/0 t-0
        commit 1/0 => 1/0                           | PrepareCommit 1/0 t-0
        commit 1/0 => ConcurrentTransactions        | PrepareCommit 1/0 t-0
        abort 1/0 => InvalidTxnState                | PrepareCommit 1/0 t-0
        complete => ok                              | CompleteCommit 1/0
        commit 1/0 => 1/0                           | CompleteCommit 1/0
        abort 1/0 => InvalidTxnState                | CompleteCommit 1/0
        add 1/0 t-0 => ok                           | Ongoing 1/0 t-0
        abort 1/0 => 1/0                            | PrepareAbort 1/0 t-0
        abort 1/0 => ConcurrentTransactions         | PrepareAbort 1/0 t-0
        commit 1/0 => InvalidTxnState               | PrepareAbort 1/0 t-0
        complete => ok                              | CompleteAbort 1/0
        abort 1/0 => 1/0                            | CompleteAbort 1/0
        commit 1/0 => InvalidTxnState               | CompleteAbort 1/0
        """
    )


def test_nothing_begins_while_the_last_transaction_ends() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        add 1/0 t-0 => ok                           | Ongoing 1/0 t-0
        commit 1/0 => 1/0                           | PrepareCommit 1/0 t-0
        add 1/0 t-1 => ConcurrentTransactions       | PrepareCommit 1/0 t-0
        verify 1/0 t-0 => ConcurrentTransactions    | PrepareCommit 1/0 t-0
        init => ConcurrentTransactions              | PrepareCommit 1/0 t-0
        init as 1/0 => ConcurrentTransactions       | PrepareCommit 1/0 t-0
        complete => ok                              | CompleteCommit 1/0
        verify 1/0 t-0 => TransactionAbortable      | CompleteCommit 1/0
        add 1/0 t-1 => ok                           | Ongoing 1/0 t-1
        """
    )


def test_a_new_owner_fences_the_old_one() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        init => 1/1                                 | Empty 1/1
        add 1/0 t-0 => ProducerFenced               | Empty 1/1
        commit 1/0 => ProducerFenced                | Empty 1/1
        abort2 1/0 => ProducerFenced                | Empty 1/1
        verify 1/0 t-0 => ProducerFenced            | Empty 1/1
        add 9/0 t-0 => InvalidPidMapping            | Empty 1/1
        commit 9/0 => InvalidPidMapping             | Empty 1/1
        commit2 9/0 => InvalidPidMapping            | Empty 1/1
        add 1/1 t-0 => ok                           | Ongoing 1/1 t-0
        # The open transaction is aborted first; its owner gets nowhere from here on.
        init => ConcurrentTransactions              | PrepareAbort 1/3 t-0
        commit 1/1 => ProducerFenced                | PrepareAbort 1/3 t-0
        commit2 1/1 => ProducerFenced               | PrepareAbort 1/3 t-0
        abort2 1/1 => ProducerFenced                | PrepareAbort 1/3 t-0
        add 1/1 t-1 => ProducerFenced               | PrepareAbort 1/3 t-0
        init => ConcurrentTransactions              | PrepareAbort 1/3 t-0
        complete => ok                              | CompleteAbort 1/3
        commit 1/1 => ProducerFenced                | CompleteAbort 1/3
        abort 1/1 => ProducerFenced                 | CompleteAbort 1/3
        abort2 1/1 => ProducerFenced                | CompleteAbort 1/3
        add 1/1 t-1 => ProducerFenced               | CompleteAbort 1/3
        init => 1/4                                 | Empty 1/4
        """
    )


def test_an_id_that_was_never_used_belongs_to_nobody() -> None:
    check(
        """
        add 1/0 t-0 => InvalidPidMapping            | unknown
        verify 1/0 t-0 => InvalidPidMapping         | unknown
        commit 1/0 => InvalidPidMapping             | unknown
        commit2 1/0 => InvalidPidMapping            | unknown
        init as 5/3 => 1/0                          | Empty 1/0
        """
    )


def test_in_version_2_each_transaction_has_an_epoch() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        add2 1/0 t-0 => ok                          | Ongoing 1/0 t-0
        add2 1/0 t-1 => ok                          | Ongoing 1/0 t-0 t-1
        commit2 1/0 => 1/1                          | PrepareCommit 1/1 t-0 t-1 last=0
        # The answer was lost: the client asks again with the epoch it knows.
        commit2 1/0 => ConcurrentTransactions       | PrepareCommit 1/1 t-0 t-1 last=0
        abort2 1/0 => InvalidTxnState               | PrepareCommit 1/1 t-0 t-1 last=0
        # Or it got the answer, and is faster than the markers.
        add2 1/1 t-0 => ConcurrentTransactions      | PrepareCommit 1/1 t-0 t-1 last=0
        commit2 1/1 => ConcurrentTransactions       | PrepareCommit 1/1 t-0 t-1 last=0
        complete => ok                              | CompleteCommit 1/1 last=0
        commit2 1/0 => 1/1                          | CompleteCommit 1/1 last=0
        abort2 1/0 => InvalidTxnState               | CompleteCommit 1/1 last=0
        add2 1/1 t-0 => ok                          | Ongoing 1/1 t-0 last=0
        # Late copies of the first commit do not touch the second transaction.
        commit2 1/0 => ProducerFenced               | Ongoing 1/1 t-0 last=0
        abort2 1/0 => ProducerFenced                | Ongoing 1/1 t-0 last=0
        abort2 1/1 => 1/2                           | PrepareAbort 1/2 t-0 last=1
        complete => ok                              | CompleteAbort 1/2 last=1
        abort2 1/1 => 1/2                           | CompleteAbort 1/2 last=1
        commit2 1/1 => InvalidTxnState              | CompleteAbort 1/2 last=1
        """
    )


def test_in_version_2_a_client_may_abort_what_never_began() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        commit2 1/0 => InvalidTxnState              | Empty 1/0
        abort2 1/0 => 1/1                           | PrepareAbort 1/1 last=0
        complete => ok                              | CompleteAbort 1/1 last=0
        abort2 1/1 => 1/2                           | PrepareAbort 1/2 last=1
        complete => ok                              | CompleteAbort 1/2 last=1
        commit2 1/2 => InvalidTxnState              | CompleteAbort 1/2 last=1
        init => 1/3                                 | Empty 1/3
        # Whoever asks with an epoch from before the new owner is fenced.
        abort2 1/2 => ProducerFenced                | Empty 1/3
        """
    )


def test_a_transaction_open_for_too_long_is_aborted() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        at 1000
        add2 1/0 t-0 => ok                          | Ongoing 1/0 t-0
        at 50000
        add2 1/0 t-1 => ok                          | Ongoing 1/0 t-0 t-1
        at 61000
        clock => in time                            | Ongoing 1/0 t-0 t-1
        at 61001
        clock => timed out                          | PrepareAbort 1/1 t-0 t-1 last=0
        add2 1/0 t-2 => ProducerFenced              | PrepareAbort 1/1 t-0 t-1 last=0
        commit2 1/0 => InvalidTxnState              | PrepareAbort 1/1 t-0 t-1 last=0
        abort2 1/0 => ConcurrentTransactions        | PrepareAbort 1/1 t-0 t-1 last=0
        complete => ok                              | CompleteAbort 1/1 last=0
        add2 1/0 t-2 => ProducerFenced              | CompleteAbort 1/1 last=0
        commit 1/0 => ProducerFenced                | CompleteAbort 1/1 last=0
        abort 1/0 => ProducerFenced                 | CompleteAbort 1/1 last=0
        commit2 1/0 => InvalidTxnState              | CompleteAbort 1/1 last=0
        # To abort is what its owner should do now, and then it may go on, even after a reload.
        abort2 1/0 => 1/1                           | CompleteAbort 1/1 last=0
        reload => ok                                | CompleteAbort 1/1
        abort2 1/0 => 1/1                           | CompleteAbort 1/1
        add2 1/1 t-0 => ok                          | Ongoing 1/1 t-0
        abort2 1/0 => ProducerFenced                | Ongoing 1/1 t-0
        """
    )


def test_an_owner_that_was_too_slow_may_ask_for_a_new_epoch_unless_somebody_else_came() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        add 1/0 t-0 => ok                           | Ongoing 1/0 t-0
        at 70000
        clock => timed out                          | PrepareAbort 1/1 t-0 last=0
        init as 1/0 => ConcurrentTransactions       | PrepareAbort 1/1 t-0 last=0
        complete => ok                              | CompleteAbort 1/1 last=0
        init as 1/0 => 1/1                          | Empty 1/1 last=0
        add 1/1 t-0 => ok                           | Ongoing 1/1 t-0 last=0
        at 140000
        clock => timed out                          | PrepareAbort 1/2 t-0 last=1
        complete => ok                              | CompleteAbort 1/2 last=1
        init => 1/3                                 | Empty 1/3
        init as 1/1 => ProducerFenced               | Empty 1/3
        clock => in time                            | Empty 1/3
        """
    )


def test_a_producer_goes_on_after_an_error_unless_somebody_else_came() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        init as 1/0 => 1/1                          | Empty 1/1 last=0
        # The answer was lost.
        init as 1/0 => 1/1                          | Empty 1/1 last=0
        init as 1/1 => 1/2                          | Empty 1/2 last=1
        init => 1/3                                 | Empty 1/3
        init as 1/1 => ProducerFenced               | Empty 1/3
        init as 1/2 => ProducerFenced               | Empty 1/3
        init as 7/3 => ProducerFenced               | Empty 1/3
        add 1/3 t-0 => ok                           | Ongoing 1/3 t-0
        init as 1/2 => ProducerFenced               | Ongoing 1/3 t-0
        init as 1/3 => ConcurrentTransactions       | PrepareAbort 1/4 t-0 last=3
        init as 1/3 => ConcurrentTransactions       | PrepareAbort 1/4 t-0 last=3
        complete => ok                              | CompleteAbort 1/4 last=3
        init as 1/3 => 1/4                          | Empty 1/4 last=3
        init as 1/3 => 1/4                          | Empty 1/4 last=3
        # After a reload nobody can tell it from one that was fenced.
        reload => ok                                | Empty 1/4
        init as 1/3 => ProducerFenced               | Empty 1/4
        """
    )


def test_epochs_run_out_and_a_new_producer_id_follows() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        set 1/32764 => ok                           | Empty 1/32764
        init => 1/32765                             | Empty 1/32765
        init => 1/32766                             | Empty 1/32766
        init => 2/0                                 | Empty 2/0 previous=1
        init => 2/1                                 | Empty 2/1
        """
    )


def test_a_producer_that_goes_on_gets_a_new_id_when_its_epochs_ran_out() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        set 1/32765 => ok                           | Empty 1/32765
        init as 1/32765 => 1/32766                  | Empty 1/32766 last=32765
        init as 1/32766 => 2/0                      | Empty 2/0 previous=1 last=32766
        # The answer was lost.
        init as 1/32766 => 2/0                      | Empty 2/0 previous=1 last=32766
        init as 2/0 => 2/1                          | Empty 2/1 last=0
        init as 1/32766 => ProducerFenced           | Empty 2/1 last=0
        """
    )


def test_the_last_epoch_of_a_client_ends_its_transaction_under_a_new_id() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        set 1/32766 => ok                           | Empty 1/32766
        add2 1/32766 t-0 => ok                      | Ongoing 1/32766 t-0
        commit2 1/32766 => 2/0                      | PrepareCommit 1/32767 t-0 next=2 last=32766
        commit2 1/32766 => ConcurrentTransactions   | PrepareCommit 1/32767 t-0 next=2 last=32766
        add2 2/0 t-0 => ConcurrentTransactions      | PrepareCommit 1/32767 t-0 next=2 last=32766
        init as 2/0 => ConcurrentTransactions       | PrepareCommit 1/32767 t-0 next=2 last=32766
        commit2 2/0 => ConcurrentTransactions       | PrepareCommit 1/32767 t-0 next=2 last=32766
        reload => ok                                | PrepareCommit 1/32767 t-0 next=2
        complete => ok                              | CompleteCommit 2/0 previous=1
        commit2 1/32766 => 2/0                      | CompleteCommit 2/0 previous=1
        abort2 1/32766 => InvalidTxnState           | CompleteCommit 2/0 previous=1
        reload => ok                                | CompleteCommit 2/0 previous=1
        commit2 1/32766 => 2/0                      | CompleteCommit 2/0 previous=1
        add2 2/0 t-1 => ok                          | Ongoing 2/0 t-1
        commit2 1/32766 => InvalidPidMapping        | Ongoing 2/0 t-1
        """
    )


def test_fencing_works_at_the_last_epoch_too() -> None:
    check(
        """
        init => 1/0                                 | Empty 1/0
        set 1/32766 => ok                           | Empty 1/32766
        add2 1/32766 t-0 => ok                      | Ongoing 1/32766 t-0
        at 70000
        clock => timed out                          | PrepareAbort 1/32767 t-0 last=32766
        commit2 1/32766 => ProducerFenced           | PrepareAbort 1/32767 t-0 last=32766
        abort2 1/32766 => ProducerFenced            | PrepareAbort 1/32767 t-0 last=32766
        complete => ok                              | CompleteAbort 1/32767 last=32766
        abort2 1/32766 => ProducerFenced            | CompleteAbort 1/32767 last=32766
        commit2 1/32766 => ProducerFenced           | CompleteAbort 1/32767 last=32766
        init as 1/32766 => 2/0                      | Empty 2/0 previous=1 last=32766
        init as 1/32766 => 2/0                      | Empty 2/0 previous=1 last=32766
        # And by a new owner.
        set 2/32766 => ok                           | Empty 2/32766
        add 2/32766 t-0 => ok                       | Ongoing 2/32766 t-0
        init => ConcurrentTransactions              | PrepareAbort 2/32767 t-0
        complete => ok                              | CompleteAbort 2/32767
        init => 3/0                                 | Empty 3/0 previous=2
        """
    )


def transaction(state: TransactionState, updated_ms: int) -> Transaction:
    return Transaction(
        transactional_id="t",
        state=state,
        producer_id=1,
        producer_epoch=0,
        timeout_ms=1_000,
        started_ms=updated_ms,
        updated_ms=updated_ms,
    )


@pytest.mark.parametrize(
    "state", [s for s in TransactionState if s not in (TransactionState.DEAD,)]
)
@given(unused_ms=st.integers(0, 10_000))
def test_only_idle_ids_expire_and_only_after_their_time(
    state: TransactionState, unused_ms: int
) -> None:
    is_idle = state in (
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    )
    known = transaction(state, updated_ms=50_000)
    expired = rules.is_expired(known, now_ms=50_000 + unused_ms, expiration_ms=5_000)
    assert expired == (is_idle and unused_ms >= 5_000)


@pytest.mark.parametrize("state", list(TransactionState))
@given(open_ms=st.integers(0, 3_000))
def test_only_open_transactions_time_out(state: TransactionState, open_ms: int) -> None:
    known = transaction(state, updated_ms=50_000)
    is_late = rules.is_timed_out(known, now_ms=50_000 + open_ms)
    assert is_late == (state is TransactionState.ONGOING and open_ms > 1_000)
