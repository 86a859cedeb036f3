"""Committed offsets of a group: a register per partition that never forgets and never invents.

What a reader is told must be a commit that could be the last one: not refused, begun before the
reader had its answer, and not certainly overwritten by a later one. That also covers an offset
that went back or vanished without anybody having committed that.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.faults.kcheck.findings import Evidence, Finding
from tests.faults.kcheck.operations import Offsets, Outcome, Partition, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    offset: int
    span: Span
    outcome: Outcome


def committed_offsets(evidence: Evidence) -> Iterator[Finding]:
    writes = _writes(evidence)
    for read in evidence.history.committed:
        for partition in read.asked:
            told = read.offsets.get(partition)
            fault = _fault(told, read.span, writes.get((read.group, partition), ()))
            if fault:
                yield Finding(
                    check="committed-offset",
                    text=f"{read.group} stood at {told} of {partition}, but {fault}",
                    partition=partition,
                )


def _writes(evidence: Evidence) -> dict[tuple[str, Partition], list[Write]]:
    found: dict[tuple[str, Partition], list[Write]] = defaultdict(list)

    def note(group: str, offsets: Offsets, span: Span, outcome: Outcome) -> None:
        if outcome is not Outcome.FAIL:
            for partition, offset in offsets.items():
                write = Write(offset=offset, span=span, outcome=outcome)
                found[group, partition].append(write)

    for commit in evidence.history.commits:
        note(commit.group, commit.offsets, commit.span, commit.outcome)
    for end in evidence.history.transactions:
        if end.group is not None and end.has_tried_commit:
            note(end.group, end.offsets, end.span, end.outcome)
    return found


def _fault(told: int | None, read: Span, writes: Sequence[Write]) -> str:
    """What speaks against this answer; empty: nothing does."""
    settled = [w for w in writes if w.outcome is Outcome.OK and w.span.is_before(read)]
    if told is None:
        return f"{settled[-1].offset} had been committed" if settled else ""
    begun = [
        w for w in writes if read.completed_ns is None or w.span.invoked_ns < read.completed_ns
    ]
    candidates = [w for w in begun if w.offset == told]
    if not candidates:
        return "nobody had committed that"
    if not settled:
        return ""
    # Only the settled write that began last can overwrite for certain.
    last = max(settled, key=lambda w: w.span.invoked_ns)
    if all(w.span.is_before(last.span) for w in candidates):
        return f"{last.offset} had been committed after it"
    return ""
