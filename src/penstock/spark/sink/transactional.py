"""Exactly once for a streaming query: who decided what about a batch, and how to find out again.

Every task writes into a transaction of its own and leaves it open. The driver then decides, in two
steps that survive a crash between any two of them:

1. It notes in the group `<prefix>-<query>-decision` which transactions make up the batch. The note
   is one commit of offsets, so it is there as a whole or not at all.
2. It ends each of them with a commit. Anyone who reads the note may do that, as often as needed.

Before the note nothing of the batch counts: on replay every task takes its transactional id over,
which aborts what an earlier attempt left. After the note the batch is written: on replay the tasks
only finish what is noted and write nothing, however the rows are spread over tasks now.

One thing can undo the note: a broker aborts a transaction that stays open for longer than its
timeout. So each transaction also carries an offset for the group `<prefix>-<query>-sink` with the
batch's number: it tells the transactions that were committed from those that were not, and a
replay writes the latter's rows again, task by task. Only this needs the same rows in the same task.

Notes are metadata of commits whose offset is -1, which brokers keep and tools take for no position:
nobody is shown a lag of groups that read nothing. A transaction can carry nothing else, so other
tools list these groups; ours leave them out (`holds_notes`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.client.operations.group_offsets import alter_group_offsets, group_offsets
from penstock.client.operations.transactions import (
    TransactionDescription,
    describe_transactions,
    fence_producers,
    list_transactions,
)
from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.transaction_control import OpenTransaction, end_all, note_offset, persist
from penstock.errors import PenstockError, UnsupportedVersion

_NOTE_CHARS_MAX = 4_000  # Brokers take 4,096 bytes (offset.metadata.max.bytes).
_OPEN = "Ongoing"
_NO_POSITION = -1
# A prefix of the user's, the id that Spark gave the query, and what is noted.
_NOTES = re.compile(r".+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-(sink|decision)")


class DeliveryError(PenstockError):
    """A batch that cannot be written exactly once; the message says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryNames:
    """What one query's writes are called on the brokers."""

    prefix: str
    query_id: str

    @property
    def sink_group(self) -> str:
        """Holds, for each task, the number of the batch that it committed last."""
        return f"{self.prefix}-{self.query_id}-sink"

    @property
    def decision_group(self) -> str:
        """Holds the driver's note about the latest batch."""
        return f"{self.prefix}-{self.query_id}-decision"

    def transactional_id(self, task: int) -> str:
        return f"{self.transactional_id_prefix}{task}"

    @property
    def transactional_id_prefix(self) -> str:
        return f"{self.prefix}-{self.query_id}-"


def holds_notes(group_id: str) -> bool:
    """Whether a group by its name is one of ours that nobody reads with."""
    return _NOTES.fullmatch(group_id) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDecision:
    """The driver's note: these transactions are the batch."""

    batch_id: int
    task_count: int  # Of all tasks, also of those that had nothing to write.
    transactions: Mapping[int, OpenTransaction]  # By task.
    adds_to_standing: bool = False  # Other transactions of this batch were committed before.


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcome:
    """What became of a decision."""

    committed: frozenset[int] = field(default=frozenset())
    aborted: frozenset[int] = field(default=frozenset())  # By the broker, for their age.


class BatchLedger:
    """The notes of one query, on its brokers."""

    def __init__(self, cluster: ClusterClient, names: QueryNames) -> None:
        self.cluster = cluster
        self.names = names

    def latest(self) -> BatchDecision | None:
        """The newest decision; None: there was none yet, or it is older than brokers remember."""
        group = self.names.decision_group
        return decision_from(self._notes(group).values(), self.names)

    def decide(self, decision: BatchDecision, topic: str) -> None:
        """Note it: from here on the batch counts as written."""
        offsets = {
            TopicPartition(topic, at): OffsetAndMetadata(_NO_POSITION, note)
            for at, note in enumerate(decision_notes(decision))
        }
        group = self.names.decision_group
        persist(self.cluster, lambda: alter_group_offsets(self.cluster, group, offsets))

    def finish(self, decision: BatchDecision) -> BatchOutcome:
        """Commit all its transactions; may be done again by anyone, at any time."""
        by_transaction = {open_: task for task, open_ in decision.transactions.items()}
        outcomes = end_all(self.cluster, by_transaction, commit=True)
        refused = {by_transaction[open_] for open_, error in outcomes.items() if error}
        done = self._marked(decision.batch_id) if refused else frozenset()
        aborted = frozenset(refused - done)
        return BatchOutcome(
            committed=frozenset(by_transaction.values()) - aborted,
            aborted=aborted,
        )

    def mark(self, open_: OpenTransaction, *, task: int, batch_id: int, topic: str) -> None:
        """Write into the transaction that this task has committed this batch."""
        note_offset(
            self.cluster,
            open_,
            group_id=self.names.sink_group,
            at=TopicPartition(topic, task),
            offset=_NO_POSITION,
            metadata=str(batch_id),
        )

    def lost(self, transactions: Iterable[OpenTransaction]) -> list[str]:
        """The ids of those that are no longer open: timed out, or taken over by another."""
        wanted = {open_.transactional_id: open_ for open_ in transactions}
        try:
            found = persist(self.cluster, lambda: describe_transactions(self.cluster, wanted))
        except UnsupportedVersion:
            return []  # Before Kafka 3.0 nobody can ask; ending them will tell.
        return [each for each, open_ in wanted.items() if not _is_open(found[each], open_)]

    def abort_strays(self, keep: Iterable[OpenTransaction] = ()) -> None:
        """Abort open transactions of this query that nobody will end: readers wait for them."""
        kept = {open_.transactional_id for open_ in keep}
        prefix = self.names.transactional_id_prefix
        try:
            listed = persist(self.cluster, lambda: list_transactions(self.cluster))
        except UnsupportedVersion:
            return  # Before Kafka 3.0 they end by their timeout.
        strays = [
            each.transactional_id
            for each in listed
            if each.state == _OPEN
            and each.transactional_id.startswith(prefix)
            and each.transactional_id not in kept
        ]
        persist(self.cluster, lambda: fence_producers(self.cluster, strays))

    def _marked(self, batch_id: int) -> frozenset[int]:
        noted = self._notes(self.names.sink_group)
        return frozenset(
            at.partition for at, mark in noted.items() if mark.metadata == str(batch_id)
        )

    def _notes(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        return persist(self.cluster, lambda: group_offsets(self.cluster, group, with_notes=True))


def decision_notes(decision: BatchDecision) -> list[str]:
    """The decision as texts that fit into the metadata of an offset each."""
    entries = [
        f"{task}:{open_.producer_id}:{open_.producer_epoch}:{int(open_.has_own_epoch)}"
        for task, open_ in sorted(decision.transactions.items())
    ]
    pieces: list[list[str]] = [[]]
    room = _NOTE_CHARS_MAX
    for entry in entries:
        room -= len(entry) + 1
        if room < 0:
            pieces.append([])
            room = _NOTE_CHARS_MAX - len(entry) - 1
        pieces[-1].append(entry)
    adds = int(decision.adds_to_standing)
    front = f"{decision.batch_id};{len(pieces)};{decision.task_count};{adds};"
    return [front + ",".join(piece) for piece in pieces]


def decision_from(noted: Iterable[OffsetAndMetadata], names: QueryNames) -> BatchDecision | None:
    """The newest decision among notes, of which older ones may be left over."""
    every = [_fields(each) for each in noted]
    if not every:
        return None
    batch_id = max(int(fields[0]) for fields in every)
    notes = [fields[1:] for fields in every if int(fields[0]) == batch_id]
    piece_count, task_count, adds, _ = notes[0]
    if len(notes) < int(piece_count):
        raise DeliveryError(
            f"The group {names.decision_group} holds {len(notes)} of {piece_count} parts of what "
            f"was decided about batch {batch_id}. Somebody changed its offsets."
        )
    transactions: dict[int, OpenTransaction] = {}
    for note in notes:
        for entry in filter(None, note[3].split(",")):
            task, producer_id, epoch, own = map(int, entry.split(":"))
            transactions[task] = OpenTransaction(
                names.transactional_id(task), producer_id, epoch, bool(own)
            )
    return BatchDecision(
        batch_id=batch_id,
        task_count=int(task_count),
        transactions=transactions,
        adds_to_standing=bool(int(adds)),
    )


def _fields(note: OffsetAndMetadata) -> list[str]:
    """The parts of a note; the first notes had the batch's number as their offset."""
    fields = note.metadata.split(";")
    return fields if note.offset == _NO_POSITION else [str(note.offset), *fields]


def must_write(
    decision: BatchDecision | None, outcome: BatchOutcome | None, *, batch_id: int, task: int
) -> bool:
    """Whether a task has to write its rows, given the latest decision and what became of it."""
    if decision is None or decision.batch_id < batch_id:
        return True
    if decision.batch_id > batch_id:
        raise DeliveryError(
            f"Batch {batch_id} is about to be written, but batch {decision.batch_id} of this query "
            "was written before: the checkpoint is older than the output. Start with a new "
            "checkpoint, or with another transactionalIdPrefix if the rows may be written again."
        )
    assert outcome is not None
    if outcome.aborted and not outcome.committed and not decision.adds_to_standing:
        return True  # Nothing of the batch was committed: it begins anew, in whatever tasks.
    return task in outcome.aborted


def next_decision(
    earlier: BatchDecision | None,
    outcome: BatchOutcome | None,
    *,
    batch_id: int,
    task_count: int,
    written: Mapping[int, OpenTransaction],
) -> BatchDecision | None:
    """What to note about the transactions just written; None: there is nothing to note."""
    if earlier is None or earlier.batch_id != batch_id or outcome is None:
        fresh = BatchDecision(batch_id=batch_id, task_count=task_count, transactions=written)
        return fresh if written else None
    if not outcome.aborted:
        return None
    if not outcome.committed and not earlier.adds_to_standing:
        return BatchDecision(batch_id=batch_id, task_count=task_count, transactions=written)
    if task_count != earlier.task_count or set(written) != set(outcome.aborted):
        raise DeliveryError(
            f"Batch {batch_id} was committed in part: the broker aborted the transactions of the "
            f"tasks {_numbers(outcome.aborted)} of {earlier.task_count} for their age. Their rows "
            f"cannot be told from the others now, because the batch has {task_count} tasks. Start "
            "again with the earlier number of tasks, and with a longer "
            "kafka.transaction.timeout.ms."
        )
    return BatchDecision(
        batch_id=batch_id, task_count=task_count, transactions=written, adds_to_standing=True
    )


def _is_open(found: TransactionDescription | PenstockError, open_: OpenTransaction) -> bool:
    return (
        isinstance(found, TransactionDescription)
        and found.state == _OPEN
        and (found.producer_id, found.producer_epoch) == open_.identity
    )


def _numbers(tasks: Sequence[int] | frozenset[int]) -> str:
    return ", ".join(map(str, sorted(tasks)))
