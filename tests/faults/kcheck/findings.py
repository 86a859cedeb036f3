"""What a check found, and what is derived from a history once for all checks."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tests.faults.kcheck.operations import (
    History,
    Outcome,
    Partition,
    Seen,
    Send,
    Transaction,
    WholeLog,
)


class Excuse(Enum):
    """Why a finding is told of and held against nobody: its short name, and the promise it is
    outside of."""

    WEAK_ACKS = (
        "acks 0 or 1",
        "the sender asked for no more than the leader's word, and what only a leader has may die "
        "with it; of records sent with acks=all none is missing or replaced",
    )
    NO_IDEMPOTENCE = (
        "no idempotence",
        "the sender had idempotence switched off, so its retries may be stored twice or late",
    )
    GIVEN_UP = (
        "given up",
        "more replicas lost their disks, or a leader was elected uncleanly, as the fault allows",
    )
    STALE_LEADER = (
        "stale leader",
        "a leader that was replaced without noticing may tell an earlier end, never records",
    )
    NO_WRITE_LOCKS = (
        "no write locks",
        "transactions may write to the same partitions in turns: Kafka takes no write locks",
    )
    ROT = ("rot", "the fault itself changed bytes of this replica")
    OUTAGE = (
        "outage",
        "a client was told to abort and begin again, while brokers were down",
    )
    WAITED = ("waited", "a client's patience ran out, after which it may try the same again")
    CLIENT = ("client", "a client library ended or hung by itself")
    BROKER_LOG = (
        "broker's log",
        "an error that a broker noted; to be looked at, no broken promise",
    )

    def __init__(self, short: str, meaning: str) -> None:
        self.short = short
        self.meaning = meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be."""

    check: str
    text: str
    excuse: Excuse | None = None  # None: a promise was broken.
    partition: Partition | None = None

    @property
    def is_violation(self) -> bool:
        return self.excuse is None

    def __str__(self) -> str:
        return f"{self.check}: {self.text}"


@dataclass(slots=True, kw_only=True)
class Evidence:
    """A history with its indexes. A whole log, where there is one, is the last word."""

    history: History
    sends: Mapping[int, Send] = field(init=False)  # By value, which is unique.
    ends: Mapping[str, Transaction] = field(init=False)
    whole: Mapping[Partition, WholeLog] = field(init=False)  # All records, also aborted ones.
    committed: Mapping[Partition, WholeLog] = field(init=False)  # As read_committed sees it.
    whole_offsets: Mapping[Partition, frozenset[int]] = field(init=False)
    contents: Mapping[Partition, Mapping[int, int]] = field(init=False)  # Value by offset.

    def __post_init__(self) -> None:
        history = self.history
        self.sends = {send.value: send for send in history.sends}
        self.ends = {end.name: end for end in history.transactions}
        self.whole = {log.partition: log for log in history.logs if not log.is_committed_only}
        self.committed = {log.partition: log for log in history.logs if log.is_committed_only}
        self.whole_offsets = {
            partition: frozenset(seen.offset for seen in log.records)
            for partition, log in self.whole.items()
        }
        self.contents = self._contents()

    def _contents(self) -> Mapping[Partition, Mapping[int, int]]:
        contents: dict[Partition, dict[int, int]] = defaultdict(dict)
        for seen in self.seen():
            contents[seen.partition].setdefault(seen.offset, seen.value)
        for log in self.whole.values():
            contents[log.partition].update({seen.offset: seen.value for seen in log.records})
        return contents

    def seen(self) -> Iterator[Seen]:
        """Every record that any reader met, the whole logs last."""
        for poll in self.history.polls:
            yield from poll.records
        for log in self.history.logs:
            yield from log.records

    def is_aborted(self, send: Send) -> bool:
        """Whether the record belongs to a transaction that certainly never was committed."""
        if send.transaction is None:
            return False
        end = self.ends.get(send.transaction)
        if end is None:  # Nobody ever asked to end it, so only an abort can have.
            return True
        return end.outcome is Outcome.FAIL or not end.has_tried_commit

    def excuse(self, partition: Partition) -> Excuse | None:
        """Whether the run itself gave up the promise for this partition."""
        allowed = self.history.allowed
        if allowed.is_lossy or partition in allowed.unclean_partitions:
            return Excuse.GIVEN_UP
        return None

    def ordered(self, partition: Partition) -> list[tuple[int, int]]:
        """Offsets and values of a partition in log order."""
        return sorted(self.contents.get(partition, {}).items())
