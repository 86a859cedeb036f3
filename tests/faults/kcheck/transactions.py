"""Transactions: whole or not at all, never seen before they are decided, never in a circle.

Cycles that need a write-write edge (G0 and its kin) are told of but not held against the cluster:
Kafka's transactions take no write locks, so two of them may interleave in two partitions.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from tests.faults.kcheck.findings import Evidence, Excuse, Finding
from tests.faults.kcheck.operations import Outcome, Send

Graph = Mapping[str, set[str]]


def aborted_reads(evidence: Evidence) -> Iterator[Finding]:
    """G1a: a reader of committed records met one of a transaction that was never committed."""
    shown = [
        (poll.consumer, seen)
        for poll in evidence.history.polls
        if poll.is_committed_only
        for seen in poll.records
    ]
    shown += [
        ("the last read", seen) for log in evidence.committed.values() for seen in log.records
    ]
    for reader, seen in shown:
        send = evidence.sends.get(seen.value)
        if send is not None and evidence.is_aborted(send):
            yield Finding(
                check="aborted-read",
                text=f"{reader} met {seen.value} of {send.transaction} at {seen.partition} offset "
                f"{seen.offset}, which was aborted",
                partition=seen.partition,
            )


def torn_transactions(evidence: Evidence) -> Iterator[Finding]:
    """After everything came to rest, part of a transaction is visible and part is not."""
    visible = {seen.value for log in evidence.committed.values() for seen in log.records}
    for name, sends in _by_transaction(evidence).items():
        known = [
            send
            for send in sends
            if send.outcome is Outcome.OK and send.partition in evidence.committed
        ]
        missing = [send.value for send in known if send.value not in visible]
        end = evidence.ends.get(name)
        was_committed = end is not None and end.outcome is Outcome.OK
        is_partly_there = any(send.value in visible for send in sends)
        if missing and (was_committed or is_partly_there):
            yield Finding(
                check="torn-transaction",
                text=f"{name} ({'committed' if was_committed else 'partly visible'}) lacks "
                f"{missing[:5]} of {len(known)} records",
                excuse=next(filter(None, (evidence.excuse(s.partition) for s in known)), None),
            )


def hanging_transactions(evidence: Evidence) -> Iterator[Finding]:
    """An open transaction still held back readers when all had long been decided."""
    for log in evidence.history.logs:
        if not log.is_settled:
            yield Finding(
                check="hanging-transaction",
                text=f"{log.partition} is readable to the end of no committed reader at "
                f"{log.end_offset}",
                partition=log.partition,
            )


def repeated_inputs(evidence: Evidence) -> Iterator[Finding]:
    """Two committed transactions of a group consumed one input: exactly once was broken."""
    consumed: dict[tuple[str, str, int], set[str]] = defaultdict(set)
    for poll in evidence.history.polls:
        end = evidence.ends.get(poll.transaction or "")
        if end is None or end.outcome is not Outcome.OK or end.group is None:
            continue
        for seen in poll.records:
            if seen.offset < end.offsets.get(seen.partition, 0):
                consumed[end.group, seen.partition, seen.offset].add(end.name)
    for (group, partition, offset), names in sorted(consumed.items()):
        if len(names) > 1:
            yield Finding(
                check="repeated-input",
                text=f"{group} took {partition} offset {offset} in {sorted(names)}",
                partition=partition,
            )


def cycles(evidence: Evidence) -> Iterator[Finding]:
    """G1c: transactions that each read what the next one wrote, all the way round."""
    reads_from = _reads_from(evidence)
    for group in _circles(reads_from):
        yield Finding(check="cycle-g1c", text=f"each read from the next: {group}")
    follows = _written_after(evidence)
    for group in _circles(follows):
        yield Finding(
            check="cycle-g0",
            text=f"written each after the other: {group}",
            excuse=Excuse.NO_WRITE_LOCKS,
        )


def _by_transaction(evidence: Evidence) -> Mapping[str, list[Send]]:
    found: dict[str, list[Send]] = defaultdict(list)
    for send in evidence.history.sends:
        if send.transaction is not None:
            found[send.transaction].append(send)
    return found


def _reads_from(evidence: Evidence) -> Graph:
    """Who read a value of whom, among transactions that may have been committed."""
    graph: dict[str, set[str]] = defaultdict(set)
    for poll in evidence.history.polls:
        if poll.transaction is None or not poll.is_committed_only:
            continue
        for seen in poll.records:
            send = evidence.sends.get(seen.value)
            if send is not None and send.transaction not in (None, poll.transaction):
                graph[poll.transaction].add(str(send.transaction))
    return graph


def _written_after(evidence: Evidence) -> Graph:
    """Whose record stands right behind whose, among committed transactions."""
    graph: dict[str, set[str]] = defaultdict(set)
    for partition in evidence.contents:
        before: str | None = None
        for _, value in evidence.ordered(partition):
            send = evidence.sends.get(value)
            name = send.transaction if send is not None else None
            end = evidence.ends.get(name or "")
            if name is None or end is None or end.outcome is not Outcome.OK:
                continue
            if before not in (None, name):
                graph[name].add(str(before))
            before = name
    return graph


def _circles(graph: Graph) -> list[list[str]]:
    """Strongly connected groups of more than one, by Tarjan's way without recursion."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in list(graph):
        if root in order:
            continue
        work = [(root, iter(sorted(graph.get(root, ()))))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, following = work[-1]
            for child in following:
                if child not in order:
                    order[child] = low[child] = len(order)
                    stack.append(child)
                    on_stack.add(child)
                    work.append((child, iter(sorted(graph.get(child, ())))))
                    break
                if child in on_stack:
                    low[node] = min(low[node], order[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    group = _pop_until(node, stack, on_stack)
                    if len(group) > 1:
                        found.append(sorted(group))
    return found


def _pop_until(node: str, stack: list[str], on_stack: set[str]) -> list[str]:
    group = []
    while True:
        member = stack.pop()
        on_stack.discard(member)
        group.append(member)
        if member == node:
            return group
