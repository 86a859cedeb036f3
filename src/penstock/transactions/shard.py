"""One partition of `__transaction_state` as a machine: all its transactional ids.

A shard is the state of one partition at one leader epoch. Every change is written before it is
believed, and whoever acts on it or answers for it first waits until all that was written is safe
(`StateLog.settled`); when leadership is lost the whole shard is thrown away. It is driven from one
thread and knows no time of its own.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from penstock.coordination.answers import LateAnswer
from penstock.coordination.machine import Journal
from penstock.errors import ErrorCode, TransactionalIdNotFound
from penstock.protocol.primitives import MalformedMessage
from penstock.transactions import rules
from penstock.transactions.stored import read_record, to_record, tombstone
from penstock.transactions.transaction import Transaction

_TOMBSTONES_MAX = 1_000  # In one batch, so that it stays far below any limit for batches.


class TransactionShard:
    """All transactions of one partition, while this broker leads it."""

    def __init__(self, journal: Journal, *, report: Callable[[str], None]) -> None:
        self.transactions: dict[str, Transaction] = {}
        self._journal = journal
        self._report = report

    # Loading

    def replay(
        self, key: bytes | None, value: bytes | None, record_offset: int, producer_id: int
    ) -> None:
        """Take in a record of the log; one that cannot be read changes nothing."""
        try:
            found = read_record(key, value)
        except MalformedMessage as error:
            self._report(f"a record of the transaction log is left out: {error}")
            return
        if found is None:
            self._report("a record of an unknown kind in the transaction log is left out")
            return
        transactional_id, transaction = found
        if transaction is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = transaction

    def take_marker(self, producer_id: int, *, is_committed: bool, marker_offset: int) -> None:
        """Nothing in this log is part of a transaction."""

    def start(self) -> None:
        """The coordinator carries out what is decided (`ending`)."""

    def stop(self, error: ErrorCode) -> None:
        """The coordinator's own tasks are ended by the shell."""

    def next_timer_ms(self) -> int | None:
        """None: the broker's housekeeping looks for what is due (`timed_out`)."""
        return None

    def ring(self) -> None:
        """There are no timers."""

    def take_answers(self) -> tuple[LateAnswer, ...]:
        """Nobody waits in here."""
        return ()

    def content(self) -> str:
        return f"{len(self.transactions)} transactional ids"

    # Looking

    def get(self, transactional_id: str) -> Transaction | None:
        return self.transactions.get(transactional_id)

    def described(self, transactional_id: str) -> Transaction:
        found = self.transactions.get(transactional_id)
        if found is None:
            raise TransactionalIdNotFound(f"nothing is known of {transactional_id}")
        return found

    def ending(self) -> list[Transaction]:
        """The transactions whose end is decided and not yet known everywhere."""
        return [known for known in self.transactions.values() if known.state.is_preparing]

    def timed_out(self, *, now_ms: int) -> list[Transaction]:
        """The transactions that are open for longer than they asked for."""
        for known in tuple(self.transactions.values()):
            if rules.is_of_the_future(known, now_ms=now_ms):
                self.transactions[known.transactional_id] = replace(known, started_ms=now_ms)
        known_now = self.transactions.values()
        return [each for each in known_now if rules.is_timed_out(each, now_ms=now_ms)]

    # Changing

    def store(self, after: Transaction) -> None:
        """Make this the state of its transactional id: write it, then believe it."""
        self._journal.write([to_record(after)])
        self.transactions[after.transactional_id] = after

    def restate(self, transactional_id: str) -> None:
        """Write once more what is known of the id, or that nothing is."""
        known = self.transactions.get(transactional_id)
        self._journal.write([tombstone(transactional_id) if known is None else to_record(known)])

    def forget_expired(self, *, now_ms: int, expiration_ms: int) -> int:
        """Forget the ids that were unused for long; how many."""
        expired = [
            known.transactional_id
            for known in self.transactions.values()
            if rules.is_expired(known, now_ms=now_ms, expiration_ms=expiration_ms)
        ]
        for at in range(0, len(expired), _TOMBSTONES_MAX):
            self._forget(expired[at : at + _TOMBSTONES_MAX])
        return len(expired)

    def _forget(self, transactional_ids: Iterable[str]) -> None:
        gone = list(transactional_ids)
        self._journal.write([tombstone(transactional_id) for transactional_id in gone])
        for transactional_id in gone:
            del self.transactions[transactional_id]
