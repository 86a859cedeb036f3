"""What each event does to a transaction: values in, values out.

Every function looks at what is known and says what is to be logged and what is to be answered once
that is safe; it raises what a client is told when its request changes nothing. Whoever calls it
logs `after` and makes it the known state; nothing here knows logs, clocks or other transactions.

Who may go on with a transactional id is decided by identity alone: the owner of the current
producer id and epoch. A new owner gets a new epoch, so everything an older one still sends is
refused here, and by the partitions as soon as they have seen a marker with the new epoch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from penstock.errors import (
    ConcurrentTransactions,
    InvalidPidMapping,
    InvalidTxnState,
    ProducerFenced,
    ProtocolError,
    TransactionAbortable,
)
from penstock.transactions.transaction import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    TV1,
    TV2,
    ProducerIdentity,
    TopicPartition,
    Transaction,
    TransactionState,
)

# An owner of epoch e whose transaction is aborted by the clock goes on with e + 1, as if it had
# ended it itself and missed the answer. When somebody else takes over, its epoch must not be
# mistaken for that, so another one is left out.
_FOR_THE_OWNER: Final = 1
_FOR_ANOTHER: Final = 2


class Step(NamedTuple):
    """What to log, and what to answer once that cannot be lost any more."""

    after: Transaction | None  # None: there is nothing to log.
    answer: ProducerIdentity | ProtocolError  # An error: the client is to come again.


# Getting an identity


def initialize(
    known: Transaction | None,
    *,
    transactional_id: str,
    timeout_ms: int,
    expected: ProducerIdentity | None,
    spare_id: int | None,
    now_ms: int,
) -> Step | None:
    """Make the caller the owner of the id; None: ask again with a new producer id to spare.

    `expected` is who the caller thinks it is (KIP-360): it wants to go on after an error, and must
    not displace anybody who came after it.
    """
    if known is None:
        if spare_id is None:
            return None
        return _owned(
            Transaction(
                transactional_id=transactional_id,
                state=TransactionState.EMPTY,
                producer_id=spare_id,
                producer_epoch=0,
                timeout_ms=timeout_ms,
                updated_ms=now_ms,
                previous_producer_id=spare_id,
            )
        )
    if known.state.is_preparing:
        raise ConcurrentTransactions(f"{transactional_id} is still ending its last transaction")
    if expected is not None and not _may_go_on(known, expected):
        raise ProducerFenced(
            f"{transactional_id} belongs to producer {known.producer_id} in epoch "
            f"{known.producer_epoch}, not to {expected.producer_id} in {expected.producer_epoch}"
        )
    if known.state is TransactionState.ONGOING:
        again = ConcurrentTransactions(f"the open transaction of {transactional_id} is aborted")
        if expected is not None:
            return Step(time_out(known, now_ms=now_ms), again)
        return Step(_fenced(known, _FOR_ANOTHER, last_epoch=NO_EPOCH, now_ms=now_ms), again)
    return _next_owner(
        known, timeout_ms=timeout_ms, expected=expected, spare_id=spare_id, now_ms=now_ms
    )


def _may_go_on(known: Transaction, expected: ProducerIdentity) -> bool:
    if known.state is TransactionState.ONGOING:
        return expected == known.identity
    if expected.producer_epoch not in (known.producer_epoch, known.last_epoch):
        return False
    if expected.producer_id == known.producer_id:
        return True
    # Its epochs ran out, it was given a new id, and the answer was lost.
    return expected.producer_id == known.previous_producer_id and expected.is_exhausted


def _next_owner(
    known: Transaction,
    *,
    timeout_ms: int,
    expected: ProducerIdentity | None,
    spare_id: int | None,
    now_ms: int,
) -> Step | None:
    """The next epoch, or a new producer id when there are no more epochs to give."""
    renewed = replace(
        known,
        state=TransactionState.EMPTY,
        timeout_ms=timeout_ms,
        updated_ms=now_ms,
        started_ms=NO_TIME,
        partitions=frozenset(),
        previous_producer_id=known.producer_id,
    )
    last_epoch = NO_EPOCH if expected is None else expected.producer_epoch
    if known.identity.is_exhausted:
        if spare_id is None:
            return None
        return _owned(
            replace(
                renewed,
                producer_id=spare_id,
                producer_epoch=0,
                last_epoch=last_epoch,
            )
        )
    if expected is not None and expected != known.identity:
        # The epoch is the caller's already; it missed the answer.
        return _owned(replace(renewed, previous_producer_id=known.previous_producer_id))
    next_epoch = known.producer_epoch + 1
    return _owned(replace(renewed, producer_epoch=next_epoch, last_epoch=last_epoch))


def _owned(after: Transaction) -> Step:
    return Step(after, after.identity)


# Adding partitions


def add_partitions(
    known: Transaction | None,
    identity: ProducerIdentity,
    partitions: Iterable[TopicPartition],
    *,
    client_version: int,
    now_ms: int,
) -> Step:
    """Records for these partitions, or offsets in them, are about to be written."""
    known = _owned_by(known, identity)
    if known.state.is_preparing:
        raise ConcurrentTransactions(f"{known.transactional_id} is still ending a transaction")
    wanted = frozenset(partitions)
    if known.state is TransactionState.ONGOING:
        if wanted <= known.partitions:
            return Step(None, identity)
        started_ms = known.started_ms
    else:
        started_ms = now_ms
    after = replace(
        known,
        state=TransactionState.ONGOING,
        partitions=known.partitions | wanted,
        started_ms=started_ms,
        updated_ms=now_ms,
        client_version=client_version,
        previous_producer_id=known.producer_id,
    )
    return Step(after, identity)


def verify(
    known: Transaction | None, identity: ProducerIdentity, partitions: Iterable[TopicPartition]
) -> Mapping[TopicPartition, ProtocolError | None]:
    """Which of the partitions are part of the open transaction; None: it is."""
    known = _owned_by(known, identity)
    if known.state.is_preparing:
        raise ConcurrentTransactions(f"{known.transactional_id} is still ending a transaction")
    missing = TransactionAbortable(
        f"the partition was not added to the transaction of {known.transactional_id}"
    )
    return {
        partition: None if partition in known.partitions else missing for partition in partitions
    }


def _owned_by(known: Transaction | None, identity: ProducerIdentity) -> Transaction:
    if known is None:
        raise InvalidPidMapping(f"no transactional id belongs to producer {identity.producer_id}")
    if known.identity == identity or known.next_identity == identity:
        return known
    raise _stranger(known, identity)


def _stranger(known: Transaction, identity: ProducerIdentity) -> ProtocolError:
    if known.producer_id != identity.producer_id:
        return InvalidPidMapping(
            f"{known.transactional_id} belongs to producer {known.producer_id}, "
            f"not to {identity.producer_id}"
        )
    return ProducerFenced(
        f"epoch {identity.producer_epoch} of producer {identity.producer_id} is not the epoch of "
        f"{known.transactional_id}, which is {known.producer_epoch}"
    )


# Ending


def end(
    known: Transaction | None,
    identity: ProducerIdentity,
    *,
    is_commit: bool,
    client_version: int,
    spare_id: int | None,
    now_ms: int,
) -> Step | None:
    """Commit or abort, as the client asks; None: ask again with a new producer id to spare."""
    if known is None:
        raise InvalidPidMapping(f"no transactional id belongs to producer {identity.producer_id}")
    if client_version < TV2:
        return _end_keeping_epoch(known, identity, is_commit=is_commit, now_ms=now_ms)
    if identity in (known.identity, known.next_identity):
        if known.state.is_preparing:
            raise ConcurrentTransactions(f"the last transaction of {known.transactional_id} ends")
        return _end_with_next_epoch(known, is_commit=is_commit, spare_id=spare_id, now_ms=now_ms)
    if not _has_ended(known, identity):
        raise _stranger(known, identity)
    return _asked_again(known, known.next_identity, is_commit=is_commit)


def _end_keeping_epoch(
    known: Transaction, identity: ProducerIdentity, *, is_commit: bool, now_ms: int
) -> Step:
    if known.identity != identity:
        raise _stranger(known, identity)
    if known.state is TransactionState.ONGOING:
        after = _decided(known, is_commit=is_commit, now_ms=now_ms, client_version=TV1)
        return Step(after, identity)
    return _asked_again(known, identity, is_commit=is_commit)


def _end_with_next_epoch(
    known: Transaction, *, is_commit: bool, spare_id: int | None, now_ms: int
) -> Step | None:
    """A client of version 2 cannot know whether its transaction began, so it may always abort."""
    if is_commit and known.state is not TransactionState.ONGOING:
        raise _wrong_state(known, is_commit=is_commit)
    is_exhausted = known.identity.is_exhausted
    if is_exhausted and spare_id is None:
        return None
    decided = _decided(known, is_commit=is_commit, now_ms=now_ms, client_version=TV2)
    after = replace(
        decided,
        producer_epoch=known.producer_epoch + 1,
        last_epoch=known.producer_epoch,
        next_producer_id=spare_id if is_exhausted and spare_id is not None else NO_PRODUCER_ID,
    )
    return Step(after, after.next_identity)


def _decided(
    known: Transaction, *, is_commit: bool, now_ms: int, client_version: int
) -> Transaction:
    return replace(
        known,
        state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
        updated_ms=now_ms,
        started_ms=known.started_ms if known.state is TransactionState.ONGOING else now_ms,
        client_version=client_version,
        previous_producer_id=known.producer_id,
    )


def _has_ended(known: Transaction, identity: ProducerIdentity) -> bool:
    """Whether the latest transaction was ended by this identity, which may have missed it."""
    if known.state in (TransactionState.EMPTY, TransactionState.ONGOING):
        return False
    if known.producer_id != identity.producer_id:
        was_renewed = known.previous_producer_id == identity.producer_id
        return was_renewed and identity.is_exhausted and known.producer_epoch == 0
    if known.producer_epoch == EPOCH_MAX and known.next_producer_id == NO_PRODUCER_ID:
        return False  # An owner's last epoch comes with a new id; this one was fenced off.
    return known.producer_epoch == identity.producer_epoch + 1


def _asked_again(known: Transaction, answer: ProducerIdentity, *, is_commit: bool) -> Step:
    """The same end, asked for once more, is no error; another end is."""
    if known.state is TransactionState.EMPTY or is_commit != known.is_committed:
        raise _wrong_state(known, is_commit=is_commit)
    if known.state.is_preparing:
        raise ConcurrentTransactions(f"the transaction of {known.transactional_id} is ending")
    return Step(None, answer)


def _wrong_state(known: Transaction, *, is_commit: bool) -> InvalidTxnState:
    wanted = "committed" if is_commit else "aborted"
    return InvalidTxnState(
        f"the transaction of {known.transactional_id} is in state {known.state.label} and cannot "
        f"be {wanted}"
    )


def complete(known: Transaction, *, now_ms: int) -> Transaction:
    """Every partition has its marker."""
    producer_id, producer_epoch = known.next_identity
    return replace(
        known,
        state=TransactionState.COMPLETE_COMMIT
        if known.is_committed
        else TransactionState.COMPLETE_ABORT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        updated_ms=now_ms,
    )


# Time


def is_timed_out(known: Transaction, *, now_ms: int) -> bool:
    return known.state is TransactionState.ONGOING and known.started_ms + known.timeout_ms < now_ms


def is_of_the_future(known: Transaction, *, now_ms: int) -> bool:
    """Begun by a clock that was ahead of ours, another coordinator's or our own before it was set.

    It would stay open until ours gets there, so whoever watches it counts from now.
    """
    return known.state is TransactionState.ONGOING and known.started_ms > now_ms


def time_out(known: Transaction, *, now_ms: int) -> Transaction:
    """Abort an open transaction; its owner must ask for the epoch to go on with (KIP-588)."""
    return _fenced(known, _FOR_THE_OWNER, last_epoch=known.producer_epoch, now_ms=now_ms)


def _fenced(known: Transaction, epochs: int, *, last_epoch: int, now_ms: int) -> Transaction:
    """Abort with an epoch above the owner's, which the markers carry into every partition."""
    return replace(
        known,
        state=TransactionState.PREPARE_ABORT,
        producer_epoch=min(known.producer_epoch + epochs, EPOCH_MAX),
        last_epoch=last_epoch,
        updated_ms=now_ms,
        client_version=TV2,
        previous_producer_id=known.producer_id,
    )


def is_expired(known: Transaction, *, now_ms: int, expiration_ms: int) -> bool:
    """Whether the id was unused for so long that it may be forgotten."""
    is_idle = known.state in (
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    )
    return is_idle and known.updated_ms <= now_ms - expiration_ms
