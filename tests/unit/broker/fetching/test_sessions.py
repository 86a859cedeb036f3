"""Incremental fetch sessions: what is remembered, what is news, who gives way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.fetching.sessions import FetchedPartition, FetchPlan, FetchSessions, Key
from penstock.errors import (
    FetchSessionIdNotFound,
    FetchSessionTopicId,
    InvalidFetchSessionEpoch,
)
from penstock.net.session import Session


def wanted(*keys: Key, offset: int = 0) -> list[FetchedPartition]:
    return [FetchedPartition(key=key, fetch_offset=offset, bytes_max=100) for key in keys]


def plan(
    sessions: FetchSessions,
    session_id: int,
    epoch: int,
    partitions: list[FetchedPartition],
    forgotten: tuple[Key, ...] = (),
    *,
    uses_topic_ids: bool = False,
    now_ms: int = 0,
    reader: Session | None = None,
) -> FetchPlan:
    return sessions.plan(
        session_id=session_id,
        epoch=epoch,
        wanted=partitions,
        forgotten=list(forgotten),
        uses_topic_ids=uses_topic_ids,
        now_ms=now_ms,
        reader=reader,
    )


def keys(planned: FetchPlan) -> list[Key]:
    return [partition.key for partition in planned]


def test_a_session_remembers_partitions_so_that_later_requests_name_only_changes() -> None:
    sessions = FetchSessions(slots=2, evict_after_ms=100)
    first = plan(sessions, 0, 0, wanted(("a", 0), ("a", 1)))
    assert first.session_id != 0
    assert not first.is_incremental
    second = plan(sessions, first.session_id, 1, wanted(("b", 0)), (("a", 0),))
    assert second.is_incremental
    assert keys(second) == [("a", 1), ("b", 0)]
    third = plan(sessions, first.session_id, 2, wanted(("a", 1), offset=7))
    assert [(p.key, p.fetch_offset) for p in third] == [(("a", 1), 7), (("b", 0), 0)]


def test_a_final_epoch_closes_the_session_and_is_answered_without_one() -> None:
    sessions = FetchSessions(slots=2, evict_after_ms=100)
    first = plan(sessions, 0, 0, wanted(("a", 0)))
    last = plan(sessions, first.session_id, -1, wanted(("a", 0)))
    assert last.session_id == 0
    assert len(sessions) == 0


def test_forgetting_every_partition_ends_the_session() -> None:
    sessions = FetchSessions(slots=2, evict_after_ms=100)
    first = plan(sessions, 0, 0, wanted(("a", 0)))
    empty = plan(sessions, first.session_id, 1, [], (("a", 0),))
    assert (keys(empty), empty.session_id, len(sessions)) == ([], 0, 0)


@pytest.mark.parametrize("epoch", [-1, 0, 1])
def test_nobody_uses_or_ends_the_session_of_another_principal(epoch: int) -> None:
    sessions = FetchSessions(slots=10, evict_after_ms=1000)
    alice, alice_too, mallory = (
        Session(listener="L", address="h:1", principal=f"User:{name}")
        for name in ("alice", "alice", "mallory")
    )
    first = plan(sessions, 0, 0, wanted(("secret", 0)), reader=alice)
    with pytest.raises(FetchSessionIdNotFound):
        plan(sessions, first.session_id, epoch, wanted(("a", 0)), reader=mallory)
    assert keys(plan(sessions, first.session_id, 1, [], reader=alice_too)) == [("secret", 0)]


def test_a_request_out_of_order_changes_nothing() -> None:
    sessions = FetchSessions(slots=2, evict_after_ms=100)
    first = plan(sessions, 0, 0, wanted(("a", 0)))
    with pytest.raises(InvalidFetchSessionEpoch):
        plan(sessions, first.session_id, 5, wanted(("b", 0)))
    with pytest.raises(FetchSessionTopicId):
        plan(sessions, first.session_id, 1, wanted(("b", 0)), uses_topic_ids=True)
    with pytest.raises(FetchSessionIdNotFound):
        plan(sessions, first.session_id + 1, 1, wanted(("b", 0)))
    assert keys(plan(sessions, first.session_id, 1, [])) == [("a", 0)]


def test_only_changes_are_news() -> None:
    partition = wanted(("a", 0))[0]
    assert partition.tell(high_watermark=5, log_start_offset=0, has_records=False)
    assert not partition.tell(high_watermark=5, log_start_offset=0, has_records=False)
    assert partition.tell(high_watermark=5, log_start_offset=0, has_records=True)
    assert partition.tell(high_watermark=6, log_start_offset=0, has_records=False)
    assert partition.tell(high_watermark=6, log_start_offset=2, has_records=False)
    partition.tell_error()
    assert partition.tell(high_watermark=6, log_start_offset=2, has_records=False)


def test_a_partition_that_got_records_goes_to_the_end_of_the_line() -> None:
    sessions = FetchSessions(slots=2, evict_after_ms=100)
    first = plan(sessions, 0, 0, wanted(("a", 0), ("a", 1), ("a", 2)))
    assert first.session is not None
    first.session.had_its_turn(("a", 0))
    assert keys(plan(sessions, first.session_id, 1, [])) == [("a", 1), ("a", 2), ("a", 0)]


def test_a_full_cache_gives_no_session_until_the_oldest_is_stale() -> None:
    sessions = FetchSessions(slots=1, evict_after_ms=100)
    first = plan(sessions, 0, 0, wanted(("a", 0)), now_ms=0)
    assert plan(sessions, 0, 0, wanted(("b", 0)), now_ms=50).session_id == 0
    assert plan(sessions, 0, 0, wanted(("b", 0)), now_ms=101).session_id != 0
    with pytest.raises(FetchSessionIdNotFound):
        plan(sessions, first.session_id, 1, [], now_ms=102)


@given(st.lists(st.tuples(st.sets(st.integers(0, 5)), st.sets(st.integers(0, 5))), max_size=20))
def test_a_session_holds_what_was_added_and_not_forgotten(
    steps: list[tuple[set[int], set[int]]],
) -> None:
    sessions = FetchSessions(slots=1, evict_after_ms=100)
    planned = plan(sessions, 0, 0, wanted(("a", 99)))
    expected: set[Key] = {("a", 99)}
    for epoch, (added, forgotten) in enumerate(steps, start=1):
        expected -= {("a", number) for number in forgotten}
        expected |= {("a", number) for number in added}
        planned = plan(
            sessions,
            planned.session_id,
            epoch,
            wanted(*[("a", number) for number in added]),
            tuple(("a", number) for number in forgotten),
        )
        assert set(keys(planned)) == expected


def connected() -> Session:
    return Session(listener="PLAINTEXT", address="127.0.0.1:5")


def test_a_session_ends_with_the_connection_it_is_used_on() -> None:
    sessions, reader = FetchSessions(slots=2, evict_after_ms=100), connected()
    first = plan(sessions, 0, 0, wanted(("a", 0)), reader=reader)
    reader.close()
    assert len(sessions) == 0
    with pytest.raises(FetchSessionIdNotFound):
        plan(sessions, first.session_id, 1, [], reader=connected())


def test_a_session_that_went_on_elsewhere_outlives_its_first_connection() -> None:
    sessions, reader, later = FetchSessions(slots=2, evict_after_ms=100), connected(), connected()
    first = plan(sessions, 0, 0, wanted(("a", 0)), reader=reader)
    plan(sessions, first.session_id, 1, [], reader=later)
    reader.close()
    assert keys(plan(sessions, first.session_id, 2, [], reader=later)) == [("a", 0)]
    later.close()
    assert len(sessions) == 0


def test_a_connection_that_begins_session_after_session_remembers_only_those_there_are() -> None:
    sessions, reader = FetchSessions(slots=1, evict_after_ms=100), connected()
    before = plan(sessions, 0, 0, wanted(("a", 0)), reader=reader)
    for _ in range(5):
        before = plan(sessions, before.session_id, 0, wanted(("a", 0)), reader=reader)
    assert reader.closing_count == 1
