"""The checker catches each kind of damage, by the check meant for it, and accuses nobody else."""

import json
import random
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.faults.kcheck.findings import Excuse
from tests.faults.kcheck.operations import (
    Allowed,
    Assign,
    BrokenHistory,
    Commit,
    Committed,
    History,
    Leader,
    Outcome,
    Poll,
    Seen,
    Send,
    Span,
    Transaction,
    Trouble,
    Watermark,
    WholeLog,
    operations_of,
    read_histories,
)
from tests.faults.kcheck.replicas import batches_in, divergence, read_replicas
from tests.faults.kcheck.verdict import judge

P, Q = "orders-0", "orders-1"
OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO


def at(invoked: int, completed: int | None = None) -> Span:
    return Span(invoked_ns=invoked, completed_ns=completed)


def send(value: int, offset: int | None = None, **facts: object) -> Send:
    """The value is also the time of sending, so that a producer's values rise."""
    outcome = facts.pop("outcome", OK if offset is not None else INFO)
    defaults = {"process": "c", "producer": "p1", "partition": P, "outcome": outcome}
    span = at(value * 10, value * 10 + 5 if outcome is not INFO else None)
    return Send(value=value, offset=offset, span=span, **{**defaults, **facts})  # type: ignore[arg-type]


def seen(*places: tuple[int, int], partition: str = P) -> tuple[Seen, ...]:
    return tuple(Seen(partition=partition, offset=o, value=v) for o, v in places)


def poll(*places: tuple[int, int], when: int = 1000, **facts: object) -> Poll:
    partition = str(facts.pop("partition", P))
    defaults: dict[str, object] = {"consumer": "r1", "stretch": 1}
    records = seen(*places, partition=partition)
    return Poll(records=records, span=at(when, when + 1), **{**defaults, **facts})  # type: ignore[arg-type]


def whole(*places: tuple[int, int], partition: str = P, **facts: object) -> list[WholeLog]:
    """The log as both kinds of reader see it at the end."""
    end = max((offset for offset, _ in places), default=-1) + 1
    logs = []
    for is_committed_only in (False, True):
        shown = facts.get("visible", places) if is_committed_only else places
        logs.append(
            WholeLog(
                partition=partition,
                records=seen(*shown, partition=partition),  # type: ignore[misc]
                end_offset=end,
                is_committed_only=is_committed_only,
            )
        )
    return logs


def good() -> History:
    """Three records of p1, one of them unknown but stored, read by one consumer."""
    history = History()
    history.sends += [send(1, 0), send(2), send(3, 2), send(4, outcome=FAIL)]
    history.assigns.append(Assign(consumer="r1", stretch=1, starts={P: 0}, span=at(900, 901)))
    history.polls += [poll((0, 1), (1, 2)), poll((2, 3), when=1010)]
    history.watermarks += [
        Watermark(partition=P, offset=1, span=at(11, 12)),
        Watermark(partition=P, offset=3, span=at(40, 41)),
    ]
    history.logs += whole((0, 1), (1, 2), (2, 3))
    history.leaders += [
        Leader(partition=P, epoch=0, broker_id=1, source="broker 1"),
        Leader(partition=P, epoch=1, broker_id=2, source="broker 2"),
        Leader(partition=P, epoch=1, broker_id=2, source="broker 1"),
    ]
    return history


def with_transaction(outcome: Outcome = OK) -> History:
    """One transaction over two partitions, which also commits the offset of its input."""
    history = good()
    history.sends += [send(10, 3, transaction="t1"), send(11, 0, partition=Q, transaction="t1")]
    history.polls.append(
        poll((0, 1), consumer="t", transaction="t1", is_committed_only=True, when=100)
    )
    history.transactions.append(
        Transaction(name="t1", span=at(200, 210), outcome=outcome, group="g", offsets={P: 1})
    )
    history.logs.clear()
    before = ((0, 1), (1, 2), (2, 3))
    is_there = outcome is OK
    history.logs += whole(*before, (3, 10), visible=(*before, (3, 10)) if is_there else before)
    history.logs += whole((0, 11), partition=Q, visible=((0, 11),) if is_there else ())
    told = {P: 1} if is_there else {}
    history.committed.append(Committed(group="g", asked=(P,), offsets=told, span=at(300, 301)))
    return history


@pytest.mark.parametrize(
    "history", [good(), with_transaction(OK), with_transaction(FAIL), History()]
)
def test_a_good_history_passes(history: History) -> None:
    assert judge(history).findings == ()


# Damage, one kind each. The name of the function is the name of the check that must catch it.


def lost_write(history: History) -> None:
    history.sends.append(send(5, 3))


def lost_write__without_an_offset(history: History) -> None:
    history.sends.append(send(5, outcome=OK))


def lost_write__passed_by_readers(history: History) -> None:
    history.logs.clear()
    history.sends += [send(5, 3), send(6, 4)]
    history.polls.append(poll((4, 6), consumer="r2"))


def inconsistent_offset__read_twice(history: History) -> None:
    history.sends += [send(5, producer="p2"), send(6, producer="p3")]
    history.polls += [poll((7, 5), consumer="r2"), poll((7, 6), consumer="r3")]
    history.logs.clear()


def inconsistent_offset__acked_elsewhere(history: History) -> None:
    history.sends[0] = send(1, 2)


def vanished_read(history: History) -> None:
    history.sends.append(send(5))
    history.polls.append(poll((3, 5), consumer="r2"))


def duplicate(history: History) -> None:
    history.logs[:] = whole((0, 1), (1, 2), (2, 3), (3, 3))


def reorder(history: History) -> None:
    history.sends += [send(5, 4), send(6, 3)]
    history.logs[:] = whole((0, 1), (1, 2), (2, 3), (3, 6), (4, 5))


def unsent_value(history: History) -> None:
    history.logs[:] = whole((0, 1), (1, 2), (2, 3), (3, 99))


def unsent_value__of_a_refused_write(history: History) -> None:
    history.logs[:] = whole((0, 1), (1, 2), (2, 3), (3, 4))


def nonmonotonic_poll(history: History) -> None:
    history.polls.append(poll((1, 2), when=1020))


def skipped_poll(history: History) -> None:
    del history.polls[1]
    history.polls[0] = poll((0, 1), (2, 3))


def skipped_poll__at_the_start(history: History) -> None:
    history.polls[0] = poll((1, 2))


def watermark_regress(history: History) -> None:
    history.watermarks.append(Watermark(partition=P, offset=2, span=at(50, 51)))


def aborted_read(history: History) -> None:
    history.transactions[0] = Transaction(name="t1", span=at(200, 210), outcome=FAIL)
    history.committed.clear()


def aborted_read__of_one_never_ended(history: History) -> None:
    history.transactions.clear()
    history.committed.clear()


def torn_transaction(history: History) -> None:
    history.logs[3] = whole((0, 11), partition=Q, visible=())[1]


def torn_transaction__of_unknown_end(history: History) -> None:
    history.transactions[0] = Transaction(name="t1", span=at(200), outcome=INFO)
    history.committed.clear()
    torn_transaction(history)


def hanging_transaction(history: History) -> None:
    history.logs[0] = WholeLog(
        partition=P,
        records=history.logs[0].records,
        end_offset=4,
        is_committed_only=False,
        is_settled=False,
    )


def repeated_input(history: History) -> None:
    history.polls.append(
        poll((0, 1), consumer="t", stretch=2, transaction="t2", is_committed_only=True, when=250)
    )
    history.transactions.append(
        Transaction(name="t2", span=at(260, 270), outcome=OK, group="g", offsets={P: 1})
    )


def cycle_g1c(history: History) -> None:
    history.sends.append(send(20, 1, partition=Q, transaction="t2"))
    history.logs[2:] = whole((0, 11), (1, 20), partition=Q)
    history.polls += [
        poll((1, 20), partition=Q, consumer="t", transaction="t1", is_committed_only=True),
        poll((3, 10), consumer="u", transaction="t2", is_committed_only=True),
    ]
    history.transactions.append(Transaction(name="t2", span=at(220, 230), outcome=OK))


def committed_offset(history: History) -> None:
    history.committed.append(Committed(group="g", asked=(P,), offsets={}, span=at(400, 401)))


def committed_offset__gone_back(history: History) -> None:
    history.commits += [
        Commit(group="g", offsets={P: 2}, span=at(310, 311), outcome=OK),
        Commit(group="g", offsets={P: 3}, span=at(320, 321), outcome=OK),
    ]
    history.committed.append(Committed(group="g", asked=(P,), offsets={P: 2}, span=at(400, 401)))


def committed_offset__of_nobody(history: History) -> None:
    history.committed.append(Committed(group="g", asked=(P,), offsets={P: 7}, span=at(400, 401)))


def two_leaders(history: History) -> None:
    history.leaders.append(Leader(partition=P, epoch=1, broker_id=3, source="broker 3"))


PLAIN: list[Callable[[History], None]] = [
    lost_write,
    lost_write__without_an_offset,
    lost_write__passed_by_readers,
    inconsistent_offset__read_twice,
    inconsistent_offset__acked_elsewhere,
    vanished_read,
    duplicate,
    reorder,
    unsent_value,
    unsent_value__of_a_refused_write,
    nonmonotonic_poll,
    skipped_poll,
    skipped_poll__at_the_start,
    watermark_regress,
    two_leaders,
]
TRANSACTIONAL: list[Callable[[History], None]] = [
    aborted_read,
    aborted_read__of_one_never_ended,
    torn_transaction,
    torn_transaction__of_unknown_end,
    hanging_transaction,
    repeated_input,
    cycle_g1c,
    committed_offset,
    committed_offset__gone_back,
    committed_offset__of_nobody,
]


@pytest.mark.parametrize("damage", [*PLAIN, *TRANSACTIONAL], ids=lambda damage: damage.__name__)
def test_each_damage_is_caught_by_the_check_meant_for_it(
    damage: Callable[[History], None],
) -> None:
    history = with_transaction() if damage in TRANSACTIONAL else good()
    damage(history)
    meant = damage.__name__.partition("__")[0].replace("_", "-")
    assert set(judge(history).violations) == {meant}


# What is told of, but not held against anyone


def test_a_loss_of_acks_all_is_excused_by_nothing_else() -> None:
    history = good()
    history.sends.append(send(5, 3, acks="all", is_idempotent=False))
    assert judge(history).violations == {"lost-write": 1}


def test_a_record_that_all_replicas_had_excuses_nobody_who_takes_its_place() -> None:
    history = good()
    history.sends += [send(5, 3), send(6, 3, acks="1", is_idempotent=False)]
    history.logs[:] = whole((0, 1), (1, 2), (2, 3), (3, 6))
    assert set(judge(history).violations) == {"lost-write", "inconsistent-offset"}


def test_a_loss_of_acks_1_is_reported_only() -> None:
    history = good()
    history.sends.append(send(5, 3, acks="1", is_idempotent=False))
    verdict = judge(history)
    assert verdict.violations == {}
    assert verdict.excused == {(Excuse.WEAK_ACKS, "lost-write"): 1}
    assert any("none is missing" in line for line in verdict.lines())


def test_doubles_and_disorder_without_idempotence_are_reported_only() -> None:
    history = good()
    history.sends += [send(5, 4, is_idempotent=False), send(6, 3, is_idempotent=False)]
    history.logs[:] = whole((0, 1), (1, 2), (2, 3), (3, 6), (4, 5), (5, 5))
    verdict = judge(history)
    assert verdict.violations == {}
    assert set(verdict.excused) == {
        (Excuse.NO_IDEMPOTENCE, "duplicate"),
        (Excuse.NO_IDEMPOTENCE, "reorder"),
    }


def test_a_leader_that_was_replaced_may_tell_an_earlier_end_but_not_the_last_one() -> None:
    history = good()
    history.allowed = Allowed(has_stale_leaders=True)
    watermark_regress(history)
    assert judge(history).violations == {}
    history.watermarks.append(Watermark(partition=P, offset=10_000, span=at(60, 61)))
    assert set(judge(history).violations) == {"watermark-regress"}


def test_an_allowed_unclean_election_excuses_its_partition_alone() -> None:
    history = good()
    lost_write(history)
    history.allowed = Allowed(unclean_partitions=frozenset({P}))
    assert judge(history).violations == {}
    history.allowed = Allowed(unclean_partitions=frozenset({Q}))
    assert judge(history).violations == {"lost-write": 1}


def test_interleaved_transactions_are_reported_only() -> None:
    history = History()
    places = [(1, P, 0, "t1"), (2, Q, 0, "t2"), (3, Q, 1, "t1"), (4, P, 1, "t2")]
    for value, partition, offset, name in places:
        history.sends.append(
            send(value, offset, partition=partition, producer=name, transaction=name)
        )
    history.transactions += [
        Transaction(name=name, span=at(100, 110), outcome=OK) for name in ("t1", "t2")
    ]
    history.logs += whole((0, 1), (1, 4)) + whole((0, 2), (1, 3), partition=Q)
    verdict = judge(history)
    assert verdict.violations == {}
    assert verdict.excused == {(Excuse.NO_WRITE_LOCKS, "cycle-g0"): 1}


@pytest.mark.parametrize(
    ("error", "during", "has_outages", "excuse"),
    [
        ("COORDINATOR_NOT_AVAILABLE", "commit", True, Excuse.OUTAGE),
        ("COORDINATOR_NOT_AVAILABLE", "commit", False, None),  # Nobody was down.
        ("INVALID_TXN_STATE", "commit", True, None),  # No outage makes it true.
        ("INVALID_TXN_STATE", "commit", False, None),
        ("INVALID_TXN_STATE", "abort of t", True, Excuse.OUTAGE),  # It had never begun.
        ("INVALID_TXN_STATE", "abort of t", False, None),
        ("PRODUCER_FENCED", "abort of t", True, None),
        ("REQUEST_TIMED_OUT", "commit", True, Excuse.WAITED),
        ("REQUEST_TIMED_OUT", "commit", False, Excuse.WAITED),
    ],
)
def test_an_error_is_held_against_the_cluster_unless_an_outage_or_its_kind_explains_it(
    error: str, during: str, has_outages: bool, excuse: Excuse | None
) -> None:
    history = good()
    history.allowed = Allowed(has_outages=has_outages)
    history.troubles.append(Trouble(process="c", during=during, error=error, text="no"))
    verdict = judge(history)
    assert dict(verdict.errors) == {error: 1}
    assert dict(verdict.violations) == ({} if excuse else {"undue-error": 1})
    assert dict(verdict.excused) == ({(excuse, "undue-error"): 1} if excuse else {})


def test_an_offset_commit_of_unknown_end_may_or_may_not_have_happened() -> None:
    for told in ({P: 1}, {P: 2}):
        history = with_transaction()
        history.commits.append(Commit(group="g", offsets={P: 2}, span=at(310), outcome=INFO))
        history.committed.append(Committed(group="g", asked=(P,), offsets=told, span=at(400, 401)))
        assert judge(history).violations == {}


def test_overlapping_looks_at_the_end_may_disagree() -> None:
    history = good()
    history.watermarks[:] = [
        Watermark(partition=P, offset=3, span=at(50, 60)),
        Watermark(partition=P, offset=2, span=at(55, 58)),
    ]
    assert judge(history).violations == {}


def test_a_random_run_without_damage_passes_and_with_a_record_cut_out_does_not() -> None:
    chance = random.Random(5)
    for _ in range(50):
        history = History()
        log: list[tuple[int, int]] = []
        for value in range(1, 40):
            stored = chance.random() < 0.8
            if stored:
                log.append((len(log), value))
            told = stored and chance.random() < 0.8
            history.sends.append(send(value, len(log) - 1 if told else None))
        cut = chance.randrange(len(log) - 1)
        history.polls += [
            poll(*log[:cut], consumer="r"),
            poll(*log[cut:], consumer="r", when=2000),
        ]
        history.logs += whole(*log)
        assert judge(history).findings == ()
        removed = chance.choice([s.offset for s in history.sends if s.offset is not None])
        history.logs[:] = whole(*(place for place in log if place[0] != removed))
        assert judge(history).violations["lost-write"] == 0  # A consumer has read it...
        assert judge(history).violations["vanished-read"] == 1  # ... and now it is gone.


# Replicas on disk


def stored(base_offset: int, body: bytes, epoch: int = 0) -> bytes:
    """A batch of one record as it lies in a segment; only what the checker reads is true."""
    head = struct.pack(">ibIhiqqqhii", epoch, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1)
    return struct.pack(">qi", base_offset, len(head) + len(body)) + head + body


def write_segment(root: Path, broker_id: int, *batches: bytes, first: int = 0) -> None:
    directory = root / str(broker_id) / P
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{first:020}.log").write_bytes(b"".join(batches))


def diverging(root: Path, end: int) -> Mapping[str, int]:
    dirs = {int(path.name): path for path in root.iterdir()}
    return judge(History(), read_replicas(dirs, {P: end})).violations


def test_replicas_with_the_same_bytes_below_the_high_watermark_agree(tmp_path: Path) -> None:
    common = [stored(0, b"a"), stored(1, b"b")]
    write_segment(tmp_path, 1, *common, stored(2, b"c"))
    write_segment(tmp_path, 2, *common, stored(2, b"d"))  # Not committed yet.
    write_segment(tmp_path, 3, *common)
    assert diverging(tmp_path, 2) == {}
    assert diverging(tmp_path, 3) == {"replica-divergence": 3}


@pytest.mark.parametrize(
    "second",
    [stored(1, b"x"), stored(1, b"b", epoch=1), b"", stored(1, b"b")[:-1]],
    ids=["another value", "another epoch", "missing", "cut short"],
)
def test_a_replica_that_differs_is_caught(tmp_path: Path, second: bytes) -> None:
    write_segment(tmp_path, 1, stored(0, b"a"), stored(1, b"b"))
    write_segment(tmp_path, 2, stored(0, b"a"), second)
    assert diverging(tmp_path, 2) == {"replica-divergence": 1}


def test_a_replica_whose_retention_ran_earlier_agrees(tmp_path: Path) -> None:
    write_segment(tmp_path, 1, stored(0, b"a"))
    write_segment(tmp_path, 1, stored(1, b"b"), first=1)
    write_segment(tmp_path, 2, stored(1, b"b"), first=1)
    assert diverging(tmp_path, 2) == {}


def test_garbage_in_a_segment_ends_its_reading(tmp_path: Path) -> None:
    data = stored(0, b"a") + b"\xff" * 200
    assert [batch.base_offset for batch in batches_in(data)] == [0]
    assert list(divergence({})) == []


# Histories on disk


def event(op: int, kind: str, type_: str, at_ns: int, **facts: object) -> dict[str, object]:
    return {"process": "c1", "op": op, "type": type_, "kind": kind, "at_ns": at_ns, "facts": facts}


def test_a_history_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    sent = {"producer": "p1", "partition": P, "value": 1, "acks": "all", "is_idempotent": True}
    events = [
        event(1, "send", "invoke", 10, **sent),
        event(2, "send", "invoke", 11, **{**sent, "value": 2}),
        event(1, "send", "ok", 12, offset=0),
        event(3, "watermark", "invoke", 13),
        event(3, "watermark", "ok", 14, offsets={P: 1}),
        event(4, "watermark", "invoke", 15),
        event(4, "watermark", "fail", 16),
        event(5, "trouble", "invoke", 17),
        event(5, "trouble", "ok", 18, during="commit", error="UNKNOWN_PRODUCER_ID", text="no"),
    ]
    text = "".join(json.dumps(e) + "\n" for e in events) + '{"process": "c1", "op'
    (tmp_path / "c1.jsonl").write_text(text)
    history = read_histories(tmp_path)
    assert [(s.value, s.outcome, s.offset) for s in history.sends] == [(1, OK, 0), (2, INFO, None)]
    assert [s.span for s in history.sends] == [at(10, 12), at(11)]
    assert [(w.offset, w.span) for w in history.watermarks] == [(1, at(13, 14))]
    assert [(t.process, t.error) for t in history.troubles] == [("c1", "UNKNOWN_PRODUCER_ID")]


def test_a_broken_history_is_no_good_history(tmp_path: Path) -> None:
    with pytest.raises(BrokenHistory, match="without having begun"):
        list(operations_of([event(1, "send", "ok", 1)]))
    with pytest.raises(BrokenHistory, match="twice"):
        list(operations_of([event(1, "poll", "invoke", 1), event(1, "poll", "invoke", 2)]))
    with pytest.raises(BrokenHistory, match="no kind"):
        list(operations_of([event(1, "dance", "invoke", 1)]))
    (tmp_path / "c1.jsonl").write_text('{"broken\n{"process": "c1"}\n')
    with pytest.raises(BrokenHistory, match="no JSON"):
        read_histories(tmp_path)
