"""All checks over a history, and the lines that say what came of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.faults.kcheck import commits, errors, reads, replicas, transactions, writes
from tests.faults.kcheck.findings import Evidence, Excuse, Finding
from tests.faults.kcheck.operations import History, Outcome, Partition
from tests.faults.kcheck.replicas import Replica

Check = Callable[[Evidence], Iterator[Finding]]
CHECKS: tuple[Check, ...] = (
    writes.lost_writes,
    writes.inconsistent_offsets,
    writes.vanished_reads,
    writes.duplicates,
    writes.reordered,
    writes.unsent_values,
    reads.polls_in_order,
    reads.watermark_regress,
    transactions.aborted_reads,
    transactions.torn_transactions,
    transactions.hanging_transactions,
    transactions.repeated_inputs,
    transactions.cycles,
    commits.committed_offsets,
    replicas.two_leaders,
    errors.undue_errors,
)
EXAMPLES_SHOWN = 5
TEXT_SHOWN = 400  # A circle may have thousands of members.


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    findings: tuple[Finding, ...]
    acked: int
    unknown: int
    refused: int
    read: int
    committed: int  # Transactions.
    aborted: int
    errors: Counter[str]  # That clients were given in transactions, by Kafka's names.

    @property
    def violations(self) -> Counter[str]:
        return Counter(f.check for f in self.findings if f.is_violation)

    @property
    def excused(self) -> Counter[tuple[Excuse, str]]:
        """What was found and breaks no promise: why not, and by which check."""
        return Counter((f.excuse, f.check) for f in self.findings if f.excuse is not None)

    def lines(self) -> Iterator[str]:
        """What a person wants to read: numbers first, then a few examples of each kind."""
        yield (
            f"acknowledged {self.acked}, unknown {self.unknown}, refused {self.refused}, "
            f"read {self.read}, transactions committed {self.committed} and aborted {self.aborted}"
        )
        if self.errors:
            yield f"errors given to clients: {told_counts(self.errors)}"
        for check, count in sorted(self.violations.items()):
            yield f"VIOLATION {check}: {count}"
            yield from _examples(self.findings, None, check)
        for (excuse, check), count in sorted(self.excused.items(), key=str):
            yield f"no violation: {check} {count} ({excuse.short}: {excuse.meaning})"
            yield from _examples(self.findings, excuse, check)


def told_counts(counts: Counter[str]) -> str:
    """The most frequent first, for a person."""
    return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"


def _examples(findings: Iterable[Finding], excuse: Excuse | None, check: str) -> Iterator[str]:
    chosen = [f for f in findings if f.check == check and f.excuse is excuse]
    for finding in chosen[:EXAMPLES_SHOWN]:
        yield f"    {finding.text[:TEXT_SHOWN]}"


def judge(
    history: History, copies: Mapping[Partition, Mapping[int, Replica]] | None = None
) -> Verdict:
    """Everything that any check finds in the history and in the replicas' files."""
    evidence = Evidence(history=history)
    findings = [finding for check in CHECKS for finding in check(evidence)]
    for copy in (copies or {}).values():
        findings += replicas.divergence(copy)
    outcomes = Counter(send.outcome for send in history.sends)
    return Verdict(
        findings=tuple(findings),
        acked=outcomes[Outcome.OK],
        unknown=outcomes[Outcome.INFO],
        refused=outcomes[Outcome.FAIL],
        read=sum(len(poll.records) for poll in history.polls),
        committed=sum(end.outcome is Outcome.OK for end in history.transactions),
        aborted=sum(end.outcome is Outcome.FAIL for end in history.transactions),
        errors=Counter(trouble.error for trouble in history.troubles),
    )
