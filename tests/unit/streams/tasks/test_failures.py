"""What fails for a record reaches who listens; a log has only so many entries of a batch."""

from penstock.streams.tasks.failures import (
    REASON_CHARACTERS_MAX,
    FailureLog,
    FailureNotes,
    RecordFailure,
    listening,
    tell,
)


def notes(entries_max: int) -> FailureNotes:
    log = FailureLog(topic="log", entry=lambda f: f.reason.encode(), entries_max=entries_max)
    return FailureNotes(log)


def test_who_listens_is_told_and_nobody_else() -> None:
    outer: list[str] = []
    inner: list[str] = []
    tell("nobody hears this")
    with listening(outer.append):
        tell("a")
        with listening(inner.append):
            tell("b")
        tell("c")
    tell("nor this")
    assert (outer, inner) == (["a", "c"], ["b"])


def test_a_batch_has_so_many_entries_and_one_that_counts_the_rest() -> None:
    kept = notes(3)
    entries = [kept.entry(RecordFailure(f"r{number}", 5)) for number in range(10)]
    assert entries == [b"r0", b"r1", b"r2", *[None] * 7]
    assert kept.rest(6) == b"7 more failures of this batch are not told one by one"
    assert kept.rest(6) is None


def test_nothing_is_said_of_a_rest_where_all_was_told() -> None:
    kept = notes(1)
    kept.entry(RecordFailure("r", 5))
    assert kept.rest(6) is None


def test_a_reason_without_end_is_cut() -> None:
    entry = notes(1).entry(RecordFailure("x" * 1_000_000, 5))
    assert entry is not None and len(entry) == REASON_CHARACTERS_MAX + 3
