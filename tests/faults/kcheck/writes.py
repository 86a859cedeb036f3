"""Writes: none lost, none twice, none out of order, none that nobody sent."""

from collections import defaultdict
from collections.abc import Iterator

from tests.faults.kcheck.findings import Evidence, Excuse, Finding
from tests.faults.kcheck.operations import Outcome, Partition, Send

FIRM = ("read", "acks=all")  # How a record is known that must stay where it is.


def lost_writes(evidence: Evidence) -> Iterator[Finding]:
    """An acknowledged record that readers passed by, or that the whole log does not have."""
    present = {value for offsets in evidence.contents.values() for value in offsets.values()}
    for send in evidence.history.sends:
        if send.outcome is Outcome.OK and send.value not in present:
            if not _should_be_known(evidence, send):
                continue
            yield Finding(
                check="lost-write",
                text=f"{send.partition}: {send.value} of {send.producer} was acknowledged "
                f"(acks={send.acks}, offset {send.offset}) and is gone",
                excuse=evidence.excuse(send.partition)
                or (None if send.acks == "all" else Excuse.WEAK_ACKS),
                partition=send.partition,
            )


def _should_be_known(evidence: Evidence, send: Send) -> bool:
    """Whether somebody has read as far as where the record was said to be."""
    if send.partition in evidence.whole:
        return True
    if send.offset is None or evidence.is_aborted(send):
        return False
    return send.offset <= max(evidence.contents.get(send.partition, {-1: 0}))


def inconsistent_offsets(evidence: Evidence) -> Iterator[Finding]:
    """One place in the log, two records: told by acknowledgements or met by readers."""
    told: dict[tuple[Partition, int], dict[int, str]] = defaultdict(dict)
    for seen in evidence.seen():
        told[seen.partition, seen.offset].setdefault(seen.value, "read")
    for send in evidence.history.sends:
        if send.outcome is Outcome.OK and send.offset is not None:
            told[send.partition, send.offset].setdefault(send.value, f"acks={send.acks}")
    for (partition, offset), values in sorted(told.items()):
        # Of records that were read or acknowledged by all there is at most one.
        firm = [value for value, how in values.items() if how in FIRM]
        if len(values) > 1:
            yield Finding(
                check="inconsistent-offset",
                text=f"{partition} offset {offset} held {values}",
                excuse=evidence.excuse(partition) or (Excuse.WEAK_ACKS if len(firm) < 2 else None),
                partition=partition,
            )


def vanished_reads(evidence: Evidence) -> Iterator[Finding]:
    """A record that a consumer was shown is missing in the whole log at the end."""
    for poll in evidence.history.polls:
        for seen in poll.records:
            log = evidence.whole.get(seen.partition)
            if log is not None and seen.offset not in evidence.whole_offsets[seen.partition]:
                yield Finding(
                    check="vanished-read",
                    text=f"{poll.consumer} read {seen.value} at {seen.partition} offset "
                    f"{seen.offset}; the log ends at {log.end_offset} without it",
                    excuse=evidence.excuse(seen.partition),
                    partition=seen.partition,
                )


def duplicates(evidence: Evidence) -> Iterator[Finding]:
    """A record stored more than once; an idempotent producer rules that out."""
    for partition in evidence.contents:
        places: dict[int, list[int]] = defaultdict(list)
        for offset, value in evidence.ordered(partition):
            places[value].append(offset)
        for value, offsets in places.items():
            if len(offsets) > 1:
                send = evidence.sends.get(value)
                yield Finding(
                    check="duplicate",
                    text=f"{partition}: {value} stands at offsets {offsets}",
                    excuse=_unordered(send),
                    partition=partition,
                )


def reordered(evidence: Evidence) -> Iterator[Finding]:
    """Records of one producer stand in another order than they were sent in."""
    for partition in evidence.contents:
        newest: dict[str, Send] = {}
        for offset, value in evidence.ordered(partition):
            send = evidence.sends.get(value)
            if send is None:
                continue
            before = newest.get(send.producer)
            if before is not None and send.span.invoked_ns < before.span.invoked_ns:
                yield Finding(
                    check="reorder",
                    text=f"{partition} offset {offset}: {value} of {send.producer} comes after "
                    f"{before.value}, which was sent later",
                    excuse=_unordered(send),
                    partition=partition,
                )
            else:
                newest[send.producer] = send


def _unordered(send: Send | None) -> Excuse | None:
    return None if send is None or send.is_idempotent else Excuse.NO_IDEMPOTENCE


def unsent_values(evidence: Evidence) -> Iterator[Finding]:
    """A record that nobody sent, or that the broker had refused, stands in the log."""
    for partition, offsets in evidence.contents.items():
        for offset, value in offsets.items():
            send = evidence.sends.get(value)
            if send is None or send.outcome is Outcome.FAIL or send.partition != partition:
                why = (
                    "nobody sent it there"
                    if send is None or send.partition != partition
                    else (f"it had been refused: {send.error}")
                )
                yield Finding(
                    check="unsent-value",
                    text=f"{partition} offset {offset} holds {value}, but {why}",
                    partition=partition,
                )
