"""Reads: within one assignment a consumer goes forward and passes nothing by."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tests.faults.kcheck.findings import Evidence, Excuse, Finding
from tests.faults.kcheck.operations import Partition, Poll, Watermark

Stretch = tuple[str, int]


def polls_in_order(evidence: Evidence) -> Iterator[Finding]:
    """Offsets that go back, and offsets left out, within each stretch of each consumer."""
    starts = {(a.consumer, a.stretch): a.starts for a in evidence.history.assigns}
    visible = {
        is_committed: _visible(evidence, is_committed_only=is_committed)
        for is_committed in (False, True)
    }
    for stretch, polls in _by_stretch(evidence.history.polls).items():
        offsets = visible[polls[0].is_committed_only]
        yield from _follow(evidence, stretch, polls, starts.get(stretch, {}), offsets)


def _by_stretch(polls: Sequence[Poll]) -> Mapping[Stretch, list[Poll]]:
    found: dict[Stretch, list[Poll]] = defaultdict(list)
    for poll in sorted(polls, key=lambda poll: poll.span.invoked_ns):
        found[poll.consumer, poll.stretch].append(poll)
    return found


def _visible(evidence: Evidence, *, is_committed_only: bool) -> Mapping[Partition, Sequence[int]]:
    """The offsets that a reader of this kind has to meet, in order."""
    found: dict[Partition, set[int]] = defaultdict(set)
    logs = evidence.committed if is_committed_only else evidence.whole
    for partition, log in logs.items():
        found[partition] = {seen.offset for seen in log.records}
    for poll in evidence.history.polls:
        if poll.is_committed_only or not is_committed_only:
            for seen in poll.records:
                if seen.partition not in logs:
                    found[seen.partition].add(seen.offset)
    return {partition: sorted(offsets) for partition, offsets in found.items()}


def _follow(
    evidence: Evidence,
    stretch: Stretch,
    polls: Sequence[Poll],
    starts: Mapping[Partition, int],
    visible: Mapping[Partition, Sequence[int]],
) -> Iterator[Finding]:
    positions = dict(starts)
    who = f"{stretch[0]} (assignment {stretch[1]})"
    for seen in (seen for poll in polls for seen in poll.records):
        position = positions.get(seen.partition)
        excuse = evidence.excuse(seen.partition)
        if position is not None and seen.offset < position:
            yield Finding(
                check="nonmonotonic-poll",
                text=f"{who} read {seen.partition} offset {seen.offset}, but stood at {position}",
                excuse=excuse,
                partition=seen.partition,
            )
        elif position is not None:
            skipped = _between(visible.get(seen.partition, ()), position, seen.offset)
            if skipped:
                yield Finding(
                    check="skipped-poll",
                    text=f"{who} went from {position} to {seen.offset} of {seen.partition} and "
                    f"left out {list(skipped[:5])}",
                    excuse=excuse,
                    partition=seen.partition,
                )
        positions[seen.partition] = seen.offset + 1


def _between(offsets: Sequence[int], first: int, end: int) -> Sequence[int]:
    return offsets[bisect_left(offsets, first) : bisect_left(offsets, end)]


def watermark_regress(evidence: Evidence) -> Iterator[Finding]:
    """The end of a partition, asked for later, was told to be earlier."""
    by_partition: dict[Partition, list[Watermark]] = defaultdict(list)
    for mark in evidence.history.watermarks:
        by_partition[mark.partition].append(mark)
    ends = {log.partition: log.end_offset for log in evidence.history.logs}
    for partition, marks in by_partition.items():
        yield from _falling(evidence, partition, marks)
        highest = max(mark.offset for mark in marks)
        if highest > ends.get(partition, highest):
            yield Finding(
                check="watermark-regress",
                text=f"{partition} ended at {highest}, and in the end at {ends[partition]}",
                excuse=evidence.excuse(partition),
                partition=partition,
            )


def _falling(
    evidence: Evidence, partition: Partition, marks: Sequence[Watermark]
) -> Iterator[Finding]:
    stale = Excuse.STALE_LEADER if evidence.history.allowed.has_stale_leaders else None
    answered = sorted(marks, key=lambda mark: mark.span.completed_ns or 0)
    highest: Watermark | None = None  # Of those answered before the one at hand was asked.
    at = 0
    for mark in sorted(marks, key=lambda mark: mark.span.invoked_ns):
        while at < len(answered) and answered[at].span.is_before(mark.span):
            if highest is None or answered[at].offset > highest.offset:
                highest = answered[at]
            at += 1
        if highest is not None and mark.offset < highest.offset:
            yield Finding(
                check="watermark-regress",
                text=f"{partition} ended at {highest.offset}, and later at {mark.offset}",
                excuse=stale or evidence.excuse(partition),
                partition=partition,
            )
