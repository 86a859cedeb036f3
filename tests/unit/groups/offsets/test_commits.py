"""Offsets are committed, kept, deleted and forgotten by the rules; and never otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.groups.rig import Rig, Written, code_of, subscription

from penstock.errors import ErrorCode, RecordBatchTooLarge, RecordTooLarge
from penstock.groups.offsets.commits import OffsetToCommit
from penstock.groups.surroundings import MemberClaim

MINUTE_MS = 60_000
HALF_HOUR_MS = 30 * MINUTE_MS  # The longest session that is allowed.
WEEK_MS = 7 * 24 * 60 * MINUTE_MS
READER = (("range", subscription("t")),)


# Committing


def test_a_consumer_without_a_group_may_commit_to_a_group_that_is_not_there() -> None:
    rig = Rig()
    assert rig.commit(5) is ErrorCode.NONE
    assert rig.offset() == 5
    assert rig.state() == "Empty"


def test_a_generation_of_a_group_that_is_not_there_is_refused() -> None:
    rig = Rig()
    assert rig.commit(5, "a-1", 3, version=8) is ErrorCode.ILLEGAL_GENERATION
    assert rig.commit(5, "a-1", 3, version=9) is ErrorCode.GROUP_ID_NOT_FOUND
    refused = rig.commit_in_transaction(5, 7, member_id="a-1", generation=3)
    assert refused is ErrorCode.ILLEGAL_GENERATION
    assert rig.state() == "Dead"
    assert rig.journal.log == []


def test_metadata_of_the_largest_size_is_kept_and_larger_is_refused() -> None:
    rig = Rig({"offset.metadata.max.bytes": "10"})
    assert rig.commit(5, metadata="x" * 10) is ErrorCode.NONE
    assert rig.commit(6, metadata="x" * 11) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert rig.offset() == 5


def test_metadata_that_no_record_can_hold_is_refused_whatever_is_configured() -> None:
    rig = Rig({"offset.metadata.max.bytes": str(1 << 20)})
    assert rig.commit(5, metadata="ä" * 16_384) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert rig.commit(5, metadata="ä" * 16_383) is ErrorCode.NONE


def test_one_bad_partition_does_not_spoil_the_others() -> None:
    rig = Rig({"offset.metadata.max.bytes": "3"})
    errors = rig.shard.commits.commit(
        "g",
        MemberClaim(),
        [
            OffsetToCommit("t", 0, 1, metadata="long"),
            OffsetToCommit("t", 1, 2, leader_epoch=4, metadata=None),
        ],
        version=8,
    )
    assert errors == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    committed = rig.shard.offsets.get("g", "t", 1)
    assert committed is not None
    assert (committed.offset, committed.leader_epoch, committed.metadata) == (2, 4, "")
    assert rig.offset() is None


def test_the_commits_of_one_request_are_one_batch() -> None:
    rig = Rig()
    rig.shard.commits.commit(
        "g", MemberClaim(), [OffsetToCommit("t", p, p) for p in range(100)], version=8
    )
    assert rig.journal.write_count == 1
    assert len(rig.journal.log) == 100


@pytest.mark.parametrize("error", [RecordTooLarge("big"), RecordBatchTooLarge("big")])
def test_a_commit_too_large_for_the_log_says_so(error: Exception) -> None:
    rig = Rig()
    rig.break_journal(error)  # type: ignore[arg-type]
    assert rig.commit(5) is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert rig.state() == "Dead"


def test_version_1_may_say_when_the_offset_was_committed() -> None:
    rig = Rig()
    rig.shard.commits.commit(
        "g", MemberClaim(), [OffsetToCommit("t", 0, 5, commit_ms=77)], version=1
    )
    committed = rig.shard.offsets.get("g", "t", 0)
    assert committed is not None and committed.commit_ms == 77


def test_a_commit_is_a_sign_of_life() -> None:
    rig = Rig()
    (member,) = rig.stable("a")
    for offset in range(5):
        rig.wait(9_000)
        assert rig.commit(offset, member, 1) is ErrorCode.NONE
    rig.wait(10_000)
    assert rig.state() == "Empty"


# Transactions


def test_a_transactional_commit_is_pending_until_its_marker() -> None:
    rig = Rig()
    rig.commit(1)
    assert rig.commit_in_transaction(5, producer_id=7) is ErrorCode.NONE
    assert rig.offset() == 1
    assert rig.shard.offsets.is_pending("g", "t", 0)
    rig.reload()
    assert rig.offset() == 1
    assert rig.shard.offsets.is_pending("g", "t", 0)
    rig.end_transaction(7, is_committed=True)
    assert rig.offset() == 5
    rig.reload()
    assert rig.offset() == 5
    assert not rig.shard.offsets.has_pending("g")


def test_a_transactional_commit_is_written_with_its_producer() -> None:
    rig = Rig()
    rig.commit_in_transaction(5, producer_id=7)
    (record,) = rig.journal.log
    assert isinstance(record, Written)
    assert record.producer_id == 7


def test_zombies_are_fenced_from_transactional_commits_by_generation_and_member() -> None:
    rig = Rig()
    (member,) = rig.stable("a")
    refused = rig.commit_in_transaction(5, 7, member_id=member, generation=0)
    assert refused is ErrorCode.ILLEGAL_GENERATION
    refused = rig.commit_in_transaction(5, 7, member_id="zombie", generation=1)
    assert refused is ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.commit_in_transaction(5, 7, member_id=member, generation=1) is ErrorCode.NONE


def test_older_producers_commit_without_telling_their_generation() -> None:
    rig = Rig()
    rig.stable("a")
    assert rig.commit_in_transaction(5, 7) is ErrorCode.NONE


def test_a_transactional_commit_is_taken_while_the_assignment_is_worked_out() -> None:
    rig = Rig()
    member = rig.member()
    join = rig.join("a", member)
    rig.wait(3000)
    assert join.told.generation_id == 1
    assert rig.commit_in_transaction(5, 7, member_id=member, generation=1) is ErrorCode.NONE
    assert rig.commit(5, member, 1) is ErrorCode.REBALANCE_IN_PROGRESS


# Deleting


def test_offsets_of_topics_nobody_reads_are_deleted() -> None:
    rig = Rig()
    (member,) = rig.stable("a", protocols=READER)
    rig.commit(1, member, 1, topic="t")
    rig.commit(2, member, 1, topic="old")
    errors = rig.shard.commits.delete("g", [("t", 0), ("old", 0), ("old", 9)])
    assert errors == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, ErrorCode.NONE]
    assert rig.offset("t") == 1
    assert rig.offset("old") is None
    rig.reload()
    assert rig.offset("t") == 1
    assert rig.offset("old") is None


def test_where_subscriptions_cannot_be_read_no_offset_of_a_consumer_group_is_deleted() -> None:
    rig = Rig()
    (member,) = rig.stable("a", protocols=(("range", b"\xff"),))
    rig.commit(1, member, 1)
    assert rig.shard.commits.delete("g", [("t", 0)]) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]


def test_offsets_of_an_empty_group_may_all_be_deleted() -> None:
    rig = Rig()
    (member,) = rig.stable("a", protocols=READER)
    rig.commit(1, member, 1)
    rig.leave(member)
    assert rig.shard.commits.delete("g", [("t", 0)]) == [ErrorCode.NONE]
    assert rig.offset() is None


def test_nothing_is_deleted_from_a_busy_group_that_is_no_consumer_group() -> None:
    rig = Rig()
    member = rig.join("a", version=3, protocol_type="connect")
    rig.wait(3000)
    assert member.told.error_code == 0
    assert code_of(lambda: rig.shard.commits.delete("g", [])) is ErrorCode.NON_EMPTY_GROUP


def test_deleting_from_a_group_that_is_not_there_fails() -> None:
    rig = Rig()
    refused = code_of(lambda: rig.shard.commits.delete("g", [("t", 0)]))
    assert refused is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_deleted_topic_takes_its_offsets_with_it() -> None:
    rig = Rig()
    for group_id in ("g", "h"):
        rig.commit(1, topic="gone", group_id=group_id)
        rig.commit(2, topic="stays", group_id=group_id)
    rig.commit_in_transaction(3, 7, topic="gone", partition=1)
    assert rig.shard.commits.delete_topics(["gone", "unknown"]) == 3
    rig.end_transaction(7, is_committed=True)
    rig.reload()
    for group_id in ("g", "h"):
        assert rig.offset("gone", group_id=group_id) is None
        assert rig.offset("stays", group_id=group_id) == 2
    assert rig.offset("gone", 1) is None


def test_what_was_committed_for_a_topic_made_anew_stays() -> None:
    """The tombstones of the old one may come late, because a disk was full."""
    rig = Rig()
    rig.commit(1, topic="gone", partition=0)
    rig.commit(1, topic="gone", partition=1)
    rig.commit_in_transaction(1, 7, topic="gone", partition=2)
    last = rig.shard.offsets.last_record_offset("g", ("gone", 2))
    rig.commit(5, topic="gone", partition=1)
    rig.commit_in_transaction(5, 8, topic="gone", partition=3)
    assert rig.shard.commits.delete_topics(["gone"], end_offset=last + 1) == 2
    rig.end_transaction(7, is_committed=True)
    rig.end_transaction(8, is_committed=True)
    found = [rig.offset("gone", number) for number in range(4)]
    assert found == [None, 5, None, 5]


def test_many_tombstones_are_written_in_pieces_that_fit_a_batch() -> None:
    rig = Rig()
    topic = "t" * 240
    offsets = [OffsetToCommit(topic, partition, 1) for partition in range(3000)]
    rig.shard.commits.commit("g", MemberClaim(), offsets, version=8)
    before = rig.journal.write_count
    assert rig.shard.commits.delete_topics([topic]) == 3000
    assert rig.journal.write_count - before >= 3
    rig.reload()
    assert len(rig.shard.offsets) == 0


# Expiring


def test_offsets_without_members_expire_one_by_one() -> None:
    rig = Rig()
    rig.commit(1, topic="old")
    rig.wait(WEEK_MS // 2)
    rig.commit(2, topic="new")
    rig.wait(WEEK_MS // 2)
    assert rig.shard.expire("g") == 1
    assert rig.offset("old") is None
    assert rig.offset("new") == 2
    rig.wait(WEEK_MS // 2)
    assert rig.shard.expire("g") == 1
    assert rig.state() == "Dead"
    rig.reload()
    assert rig.state() == "Dead"
    assert len(rig.shard.offsets) == 0


def test_offsets_of_a_group_with_members_never_expire() -> None:
    rig = Rig()
    (member,) = rig.stable("a", protocols=READER, session_ms=HALF_HOUR_MS)
    rig.commit(1, member, 1)
    rig.live(member, 1, 2 * WEEK_MS, every_ms=HALF_HOUR_MS // 2)
    assert rig.shard.expire("g") == 0
    assert rig.offset() == 1


def test_offsets_of_a_group_expire_from_when_it_became_empty() -> None:
    rig = Rig()
    (member,) = rig.stable("a", protocols=READER, session_ms=HALF_HOUR_MS)
    rig.commit(1, member, 1)
    rig.live(member, 1, 2 * WEEK_MS, every_ms=HALF_HOUR_MS // 2)
    rig.leave(member)
    rig.wait(WEEK_MS - 1)
    rig.reload()
    assert rig.shard.expire("g") == 0
    assert rig.offset() == 1
    rig.wait(1)
    assert rig.shard.expire("g") == 1
    assert rig.state() == "Dead"


def test_a_stable_group_loses_offsets_of_topics_it_gave_up() -> None:
    rig = Rig()
    (member,) = rig.stable("a", protocols=READER, session_ms=HALF_HOUR_MS)
    rig.commit(1, member, 1, topic="t")
    rig.commit(2, member, 1, topic="given up")
    rig.live(member, 1, WEEK_MS, every_ms=HALF_HOUR_MS // 2)
    assert rig.shard.expire("g") == 1
    assert rig.offset("t") == 1
    assert rig.offset("given up") is None


def test_a_rebalancing_group_loses_nothing() -> None:
    rig = Rig()
    (member,) = rig.stable("a", protocols=READER, session_ms=HALF_HOUR_MS)
    rig.commit(2, member, 1, topic="given up")
    rig.live(member, 1, WEEK_MS, every_ms=HALF_HOUR_MS // 2)
    rig.join("b", version=3, protocols=READER)
    assert rig.state() == "PreparingRebalance"
    assert rig.shard.expire("g") == 0


def test_a_committer_may_have_said_how_long_to_keep_the_offset() -> None:
    rig = Rig()
    rig.commit(1, topic="short", retention_ms=MINUTE_MS)
    rig.commit(2, topic="long", retention_ms=3 * WEEK_MS)
    rig.wait(MINUTE_MS)
    rig.reload()
    assert rig.shard.expire("g") == 1
    rig.wait(2 * WEEK_MS)
    assert rig.shard.expire("g") == 0
    assert rig.offset("long") == 2


def test_an_offset_that_a_transaction_may_change_does_not_expire() -> None:
    rig = Rig()
    rig.commit(1)
    rig.commit_in_transaction(2, 7)
    rig.wait(2 * WEEK_MS)
    assert rig.shard.expire("g") == 0
    rig.end_transaction(7, is_committed=False)
    assert rig.shard.expire("g") == 1


def test_a_group_with_only_pending_offsets_is_not_forgotten() -> None:
    rig = Rig()
    rig.commit_in_transaction(2, 7)
    rig.wait(2 * WEEK_MS)
    assert rig.shard.expire("g") == 0
    assert rig.state() == "Empty"


def test_a_group_nobody_came_back_to_is_forgotten() -> None:
    rig = Rig()
    member = rig.member()
    assert rig.shard.expire("g") == 0
    assert rig.state() == "Empty"  # The owner of the id may still come.
    rig.wait(10_000)
    assert rig.join("a", member).told.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    rig.shard.expire("g")
    assert rig.state() == "Dead"


def test_expiry_that_cannot_be_written_does_not_happen() -> None:
    rig = Rig()
    rig.commit(1)
    rig.wait(2 * WEEK_MS)
    rig.break_journal()
    assert code_of(lambda: rig.shard.expire("g")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert rig.offset() == 1
    rig.mend_journal()
    assert rig.shard.expire("g") == 1


@given(st.integers(1, 20_000), st.integers(0, 40_000))
def test_an_offset_is_kept_exactly_as_long_as_the_setting_says(
    retention_minutes: int, age_minutes: int
) -> None:
    rig = Rig({"offsets.retention.minutes": str(retention_minutes)})
    rig.commit(1)
    rig.wait(age_minutes * MINUTE_MS)
    rig.shard.expire("g")
    assert (rig.offset() is None) == (age_minutes >= retention_minutes)
