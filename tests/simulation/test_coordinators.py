"""The part of the simulator that is about transactions and groups: exact, and not blind."""

import re
from collections.abc import Callable

import pytest
from tests.simulation.coordinator_checks import judge_deals, judge_worker
from tests.simulation.groups import GroupLedger
from tests.simulation.history import History
from tests.simulation.test_clusters import number_of, simulation
from tests.simulation.trace import Trace
from tests.simulation.transactions_ledger import ABORTED, COMMITTED, Deal, Ledger

A, B = ("bank", 0), ("bank", 1)
SOURCE = ("safe", 0)


def test_a_seed_with_transactions_replays_exactly() -> None:
    first, second = (simulation("--seed", "8", "-v").stdout for _ in range(2))
    digests = [re.findall(r"in [\d.]+ s, ([0-9a-f]{16})", told) for told in (first, second)]
    assert len(digests[0]) == 1
    assert digests[0] == digests[1]
    assert number_of("transactions committed", first.splitlines()[-1]) > 0


@pytest.mark.parametrize(
    "guard",
    [
        "readers know of aborts",
        "producer epochs",
        "only coordinators answer",
        "what is safe is one's own",
        "a marker leaves the next transaction alone",
        "a marker takes guards down",
    ],
)
def test_a_coordinator_without_a_guard_is_noticed(guard: str) -> None:
    done = simulation("--mutant", guard, "--seeds", "40", "--stop")
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    assert "1 with violations" in done.stdout


# The checks, shown what they must not let pass


@pytest.fixture
def history() -> History:
    return History(Trace(lambda: 0.0))


@pytest.fixture
def ledger(history: History) -> Ledger:
    return Ledger(history)


def dealt(ledger: Ledger, name: str, *, is_asked: bool = True, told: str | None = None) -> Deal:
    """A transaction of one record in each of two partitions."""
    deal = ledger.begin(name)
    for place in (A, B):
        ledger.write(deal, f"{name}/{place[1]}".encode(), place)
    deal.is_commit_asked = is_asked
    if told is not None:
        ledger.end(deal, told)
    return deal


def seen(ledger: Ledger, *values: str) -> None:
    for value in values:
        place = ledger.by_value[value.encode()].values[value.encode()]
        at = ledger.seen.setdefault(place, {})
        at[len(at)] = value.encode()


Story = Callable[[Ledger], None]


def _half_a_commit(ledger: Ledger) -> None:
    dealt(ledger, "t", told=COMMITTED)
    seen(ledger, "t/0")


def _a_commit_that_is_lost(ledger: Ledger) -> None:
    dealt(ledger, "t", told=COMMITTED)


def _a_torn_unknown(ledger: Ledger) -> None:
    dealt(ledger, "t")
    seen(ledger, "t/1")


def _an_abort_that_is_read(ledger: Ledger) -> None:
    dealt(ledger, "t", is_asked=False, told=ABORTED)
    seen(ledger, "t/0", "t/1")


def _a_commit_nobody_asked_for(ledger: Ledger) -> None:
    dealt(ledger, "t", is_asked=False)
    seen(ledger, "t/0", "t/1")


def _a_commit_twice(ledger: Ledger) -> None:
    dealt(ledger, "t", told=COMMITTED)
    seen(ledger, "t/0", "t/1", "t/1")


@pytest.mark.parametrize(
    "story",
    [
        _half_a_commit,
        _a_commit_that_is_lost,
        _a_torn_unknown,
        _an_abort_that_is_read,
        _a_commit_nobody_asked_for,
        _a_commit_twice,
    ],
)
def test_a_transaction_that_is_not_whole_is_noticed(ledger: Ledger, story: Story) -> None:
    story(ledger)
    judge_deals(ledger)
    assert len(ledger.history.violations) == 1


def test_whole_transactions_and_unknown_ones_that_are_all_or_nothing_pass(ledger: Ledger) -> None:
    dealt(ledger, "committed", told=COMMITTED)
    dealt(ledger, "unknown and there")
    dealt(ledger, "unknown and not there")
    dealt(ledger, "aborted", is_asked=False, told=ABORTED)
    seen(ledger, "committed/0", "committed/1", "unknown and there/0", "unknown and there/1")
    judge_deals(ledger)
    assert not ledger.history.violations


@pytest.mark.parametrize(
    ("answers", "committed", "is_right"),
    [
        ([(0, 1), (2, 3)], 4, True),
        ([(0, 1), (1, 2, 3)], 4, False),
        ([(0, 1), (3,)], 4, False),
        ([(0, 1)], 4, False),
        ([(0, 1), (2, 3)], 2, False),
    ],
)
def test_every_record_is_answered_once(
    ledger: Ledger, answers: list[tuple[int, ...]], committed: int, is_right: bool
) -> None:
    ledger.history.seen[SOURCE] = dict.fromkeys(range(4), b"")
    for number, inputs in enumerate(answers):
        deal = dealt(ledger, f"w{number}", told=COMMITTED)
        deal.inputs, deal.next_input = inputs, inputs[-1] + 1
        seen(ledger, f"w{number}/0", f"w{number}/1")
    judge_worker(ledger.history, ledger, SOURCE, committed)
    assert bool(ledger.history.violations) is not is_right


def test_an_acknowledged_offset_that_went_back_is_noticed(history: History) -> None:
    group = GroupLedger(history, "bank", 1)
    first, second = group.begin(0), group.begin(0)
    first.is_loose = second.is_loose = False
    first.is_acked = second.is_acked = True
    group.judge(0, second.offset, at_least=group.last_acked(0), by="test")
    assert not history.violations
    group.judge(0, first.offset, at_least=group.last_acked(0), by="test")
    group.judge(0, -1, at_least=group.last_acked(0), by="test")
    assert len(history.violations) == 2


def test_an_offset_may_go_back_by_a_request_that_was_still_on_its_way(history: History) -> None:
    group = GroupLedger(history, "bank", 1)
    late, acked = group.begin(0), group.begin(0)
    acked.is_loose, acked.is_acked = False, True
    group.judge(0, late.offset, at_least=group.last_acked(0), by="test")
    assert not history.violations


def test_a_partition_of_two_members_is_noticed(history: History) -> None:
    group = GroupLedger(history, "bank", 3)
    group.own(1, "one", [0, 1])
    group.own(1, "other", [2])
    group.own(2, "other", [0])
    assert not history.violations
    group.own(2, "one", [0, 1, 2])
    assert len(history.violations) == 1
