"""The table that a run prints."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.faults.injectors.fault import Fault
from tests.faults.kcheck.findings import Excuse
from tests.faults.kcheck.verdict import told_counts
from tests.faults.rounds import Round

_ROW = "{:<26} {:>6} {:>5} {:>8} {:>7} {:>8} {:>5} {:>4} {:>4} {:>5} {:>5} {:>8}  {}"
_NAMED = ("lost-write", "duplicate", "reorder")


def heading() -> str:
    return _ROW.format(
        "fault", "rounds", "blows", "acked", "unknown", "read", "txns", "lost", "dup", "order",
        "other", "gap ms", "found, but no broken promise",
    )  # fmt: skip


def row(fault: Fault, rounds: Sequence[Round]) -> str:
    violations: Counter[str] = Counter()
    excused: Counter[tuple[Excuse, str]] = Counter()
    for one in rounds:
        violations += one.verdict.violations
        excused += one.verdict.excused
    return _ROW.format(
        fault.name,
        len(rounds),
        sum(one.blows for one in rounds),
        sum(one.verdict.acked for one in rounds),
        sum(one.verdict.unknown for one in rounds),
        sum(one.verdict.read for one in rounds),
        sum(one.verdict.committed for one in rounds),
        *(violations[name] for name in _NAMED),
        sum(count for name, count in violations.items() if name not in _NAMED),
        max(one.gap_ms for one in rounds),
        _told(excused),
    )


def _told(excused: Counter[tuple[Excuse, str]]) -> str:
    """By reason: acks 0 or 1 (lost-write 3, inconsistent-offset 3), client (client 1)."""
    reasons = sorted({excuse for excuse, _ in excused}, key=str)
    return ", ".join(
        f"{reason.short} ({', '.join(_counts(excused, reason))})" for reason in reasons
    )


def _counts(excused: Counter[tuple[Excuse, str]], reason: Excuse) -> list[str]:
    return [f"{check} {count}" for (excuse, check), count in excused.items() if excuse is reason]


def skipped_row(fault: Fault, reason: str) -> str:
    return f"{fault.name:<26} skipped: {reason}"


def summary(rounds: Sequence[Round]) -> Iterator[str]:
    """What was broken, if anything was, and where to look; and what the last column means."""
    bad = [one for one in rounds if not one.is_good]
    yield f"{len(rounds)} rounds, {len(bad)} with violations"
    yield (
        f"transactions committed {sum(one.verdict.committed for one in rounds)}, "
        f"aborted {sum(one.verdict.aborted for one in rounds)}"
    )
    errors = sum((one.verdict.errors for one in rounds), Counter[str]())
    yield f"errors given to clients: {told_counts(errors)}"
    for reason in sorted({excuse for one in rounds for excuse, _ in one.verdict.excused}, key=str):
        yield f"  {reason.short}: {reason.meaning}"
    for one in bad:
        yield f"\n{one.fault}: see {one.directory}"
        yield from one.verdict.lines()
