"""What clients did and were told, as typed operations, and as lines of JSON on disk.

A client writes a line when it asks (`invoke`) and a line when it knows how that ended: `ok` (it
happened), `fail` (it certainly did not happen) or `info` (nobody knows). An operation without a
second line counts as `info`: the process died, or the run ended first. Times are CLOCK_MONOTONIC
in nanoseconds, which all processes of a machine share.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

Partition = str  # "topic-3", as the brokers name its directory
Offsets = Mapping[Partition, int]


class Outcome(Enum):
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From the asking to the knowing."""

    invoked_ns: int
    completed_ns: int | None = None  # None: nobody knows when, or whether, it took effect.

    def is_before(self, other: "Span") -> bool:
        """Whether this was over before the other began."""
        return self.completed_ns is not None and self.completed_ns < other.invoked_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One record as a reader met it."""

    partition: Partition
    offset: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    process: str
    producer: str  # One producer object; a restarted client is another one.
    partition: Partition
    value: int
    span: Span
    outcome: Outcome
    offset: int | None = None  # None: not acknowledged, or acknowledged without an offset.
    acks: str = "all"
    is_idempotent: bool = True
    transaction: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign:
    """A consumer got partitions; from here on it must read each without going back or skipping."""

    consumer: str
    stretch: int
    starts: Offsets  # Where reading begins; a partition may be missing when the client cannot say.
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    consumer: str
    stretch: int
    records: tuple[Seen, ...]
    span: Span
    is_committed_only: bool = False
    transaction: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The end of a transaction: ok is committed, fail is aborted and known to be, info is open."""

    name: str
    span: Span  # From the call that ends it.
    outcome: Outcome
    has_tried_commit: bool = True
    group: str | None = None
    offsets: Offsets = field(default_factory=dict)  # Committed with it, for the group.


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    group: str
    offsets: Offsets
    span: Span
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Somebody asked where a group stands; a partition that is missing had no offset."""

    group: str
    asked: tuple[Partition, ...]
    offsets: Offsets
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """The end of a partition as a client was told it."""

    partition: Partition
    offset: int
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeLog:
    """A partition read from its start to its end after everything had healed and come to rest."""

    partition: Partition
    records: tuple[Seen, ...]
    end_offset: int
    is_committed_only: bool
    is_settled: bool = True  # False: an open transaction still held back readers at the end.


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """Somebody claimed that a broker leads a partition in an epoch."""

    partition: Partition
    epoch: int
    broker_id: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An error that a library gave to its application, after all retries of its own."""

    process: str
    during: str
    error: str  # Kafka's name of it, or the library's where Kafka has none.
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What the run itself permitted, so that its cost is reported and not held against anyone."""

    unclean_partitions: frozenset[Partition] = frozenset()
    is_lossy: bool = False  # More replicas lost their disks than the promise covers.
    # A leader that was cut off or asleep answers those who still ask it, for a while, with an end
    # that its successor has passed: no clock may take the lead from it. Never with records.
    has_stale_leaders: bool = False
    has_outages: bool = (
        True  # Brokers were down or out of reach, so clients may have waited in vain.
    )


@dataclass(slots=True, kw_only=True)
class History:
    """All operations of a run, by kind."""

    sends: list[Send] = field(default_factory=list)
    assigns: list[Assign] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    watermarks: list[Watermark] = field(default_factory=list)
    logs: list[WholeLog] = field(default_factory=list)
    leaders: list[Leader] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    allowed: Allowed = field(default_factory=Allowed)

    def add(self, operation: object) -> None:
        """Put an operation where its kind is kept."""
        self._room(operation).append(operation)

    def _room(self, operation: object) -> list[Any]:
        rooms: dict[type, list[Any]] = {
            Send: self.sends,
            Assign: self.assigns,
            Poll: self.polls,
            Transaction: self.transactions,
            Commit: self.commits,
            Committed: self.committed,
            Watermark: self.watermarks,
            WholeLog: self.logs,
            Leader: self.leaders,
            Trouble: self.troubles,
        }
        return rooms[type(operation)]


class BrokenHistory(ValueError):
    """The history itself cannot be trusted, so nothing can be said about the cluster."""


def read_histories(directory: Path) -> History:
    """The histories of all clients of a run."""
    history = History()
    for path in sorted(directory.glob("*.jsonl")):
        for operation in operations_of(read_lines(path)):
            history.add(operation)
    return history


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The events of one file; a last line cut short by a kill is left out."""
    lines = path.read_text().splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        try:
            yield json.loads(line)
        except ValueError as error:
            if number == len(lines):
                return
            raise BrokenHistory(f"{path}:{number} is no JSON: {error}") from error


def operations_of(events: Iterable[Mapping[str, Any]]) -> Iterator[object]:
    """Pair what was asked with what came of it."""
    open_ops: dict[tuple[str, int], Mapping[str, Any]] = {}
    for event in events:
        key = (event["process"], event["op"])
        if event["type"] == "invoke":
            if key in open_ops:
                raise BrokenHistory(f"{key} was invoked twice")
            open_ops[key] = event
            continue
        if key not in open_ops:
            raise BrokenHistory(f"{key} ended without having begun")
        yield from _operation(open_ops.pop(key), event)
    for begun in open_ops.values():
        yield from _operation(begun, None)


def _operation(begun: Mapping[str, Any], ended: Mapping[str, Any] | None) -> Iterator[object]:
    kind = begun["kind"]
    outcome = Outcome(ended["type"]) if ended is not None else Outcome.INFO
    span = Span(
        invoked_ns=begun["at_ns"],
        completed_ns=ended["at_ns"] if ended is not None and outcome is not Outcome.INFO else None,
    )
    facts = {**begun["facts"], **(ended["facts"] if ended is not None else {})}
    if kind in _ACTS:
        yield _ACTS[kind](begun["process"], facts, span, outcome)
    elif kind in _LOOKS and outcome is Outcome.OK:  # A look that failed has seen nothing.
        yield from _LOOKS[kind]({"process": begun["process"], **facts}, span)
    elif kind not in _LOOKS:
        raise BrokenHistory(f"{kind} is no kind of operation")


def _send(process: str, facts: Mapping[str, Any], span: Span, outcome: Outcome) -> Send:
    offset = facts.get("offset")
    return Send(
        process=process,
        producer=facts["producer"],
        partition=facts["partition"],
        value=facts["value"],
        span=span,
        outcome=outcome,
        offset=offset if offset is not None and offset >= 0 else None,
        acks=facts["acks"],
        is_idempotent=facts["is_idempotent"],
        transaction=facts.get("transaction"),
        error=facts.get("error", ""),
    )


def _transaction(
    _process: str, facts: Mapping[str, Any], span: Span, outcome: Outcome
) -> Transaction:
    return Transaction(
        name=facts["transaction"],
        span=span,
        outcome=outcome,
        has_tried_commit=facts["has_tried_commit"],
        group=facts.get("group"),
        offsets=facts.get("offsets", {}),
    )


def _commit(_process: str, facts: Mapping[str, Any], span: Span, outcome: Outcome) -> Commit:
    return Commit(group=facts["group"], offsets=facts["offsets"], span=span, outcome=outcome)


_ACTS = {"send": _send, "end": _transaction, "commit": _commit}


def _assign(facts: Mapping[str, Any], span: Span) -> Iterator[object]:
    yield Assign(
        consumer=facts["consumer"], stretch=facts["stretch"], starts=facts["starts"], span=span
    )


def _poll(facts: Mapping[str, Any], span: Span) -> Iterator[object]:
    yield Poll(
        consumer=facts["consumer"],
        stretch=facts["stretch"],
        records=_seen(facts["records"]),
        span=span,
        is_committed_only=facts["is_committed_only"],
        transaction=facts.get("transaction"),
    )


def _committed(facts: Mapping[str, Any], span: Span) -> Iterator[object]:
    yield Committed(
        group=facts["group"], asked=tuple(facts["asked"]), offsets=facts["offsets"], span=span
    )


def _watermarks(facts: Mapping[str, Any], span: Span) -> Iterator[object]:
    for partition, offset in facts["offsets"].items():
        yield Watermark(partition=partition, offset=offset, span=span)


def _log(facts: Mapping[str, Any], _span: Span) -> Iterator[object]:
    yield WholeLog(
        partition=facts["partition"],
        records=_seen(facts["records"]),
        end_offset=facts["end_offset"],
        is_committed_only=facts["is_committed_only"],
        is_settled=facts["is_settled"],
    )


def _leaders(facts: Mapping[str, Any], _span: Span) -> Iterator[object]:
    for partition, epoch, broker_id in facts["leaders"]:
        yield Leader(partition=partition, epoch=epoch, broker_id=broker_id, source=facts["source"])


def _trouble(facts: Mapping[str, Any], _span: Span) -> Iterator[object]:
    yield Trouble(
        process=facts["process"],
        during=facts["during"],
        error=facts["error"],
        text=facts["text"],
    )


_LOOKS = {
    "assign": _assign,
    "poll": _poll,
    "committed": _committed,
    "watermark": _watermarks,
    "log": _log,
    "leaders": _leaders,
    "trouble": _trouble,
}


def _seen(records: Iterable[tuple[Partition, int, int]]) -> tuple[Seen, ...]:
    return tuple(
        Seen(partition=partition, offset=offset, value=value)
        for partition, offset, value in records
    )
