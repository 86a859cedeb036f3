"""What consumer groups refuse, tell and survive, beyond what the transcripts show."""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.unit.groups.consumer_rig import ClassicConsumer, Consumer, ConsumerRig
from tests.unit.groups.rig import code_of, subscription

from penstock.cluster.image.image import ClusterImage
from penstock.errors import ErrorCode
from penstock.groups.consumer.member import MemberState
from penstock.groups.consumer.settings import assignors
from penstock.groups.consumer.topics import TopicHashes
from penstock.groups.surroundings import MemberClaim
from penstock.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from penstock.protocol.messages.consumer_group_records import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from penstock.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from penstock.protocol.stored import read_prefix

JOINING: dict[str, Any] = {
    "group_id": "g",
    "member_id": "a",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}
PARTITIONS = [TopicPartitions(topic_id=bytes(16), partitions=[0])]


@pytest.mark.parametrize(
    ("version", "fields", "sentence"),
    [
        (1, {"member_id": ""}, "MemberId can't be empty."),
        (0, {"member_id": "", "member_epoch": 1}, "MemberId can't be empty."),
        (0, {"member_id": "", "member_epoch": -1}, "MemberId can't be empty."),
        (1, {"group_id": ""}, "GroupId can't be empty."),
        (1, {"group_id": " "}, "GroupId can't be empty."),
        (1, {"instance_id": ""}, "InstanceId can't be empty."),
        (1, {"rack_id": ""}, "RackId can't be empty."),
        (1, {"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        (1, {"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (1, {"topic_partitions": PARTITIONS}, "TopicPartitions must be empty when (re-)joining."),
        (
            1,
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        (1, {"member_epoch": -2}, "InstanceId can't be null."),
        (1, {"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_what_no_member_could_send_is_refused(
    version: int, fields: dict[str, Any], sentence: str
) -> None:
    rig = ConsumerRig(t=1)
    request = ConsumerGroupHeartbeatRequest(**{**JOINING, **fields})
    answer = rig.heartbeat(request, version=version)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, sentence)
    assert rig.shard.groups == {} and rig.journal.log == []


def test_in_version_0_the_coordinator_makes_up_the_id() -> None:
    rig = ConsumerRig(t=1)
    answer = rig.heartbeat(ConsumerGroupHeartbeatRequest(**{**JOINING, "member_id": ""}), version=0)
    assert (answer.error_code, answer.member_id) == (0, "1")
    assert list(rig.known.members) == ["1"]


@pytest.mark.parametrize("epoch", [1, -1])
def test_only_whoever_joins_begins_a_group(epoch: int) -> None:
    rig = ConsumerRig(t=1)
    request = ConsumerGroupHeartbeatRequest(**{**JOINING, "member_epoch": epoch})
    assert rig.heartbeat(request).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert rig.shard.groups == {}


def test_heartbeats_do_not_reach_a_classic_group() -> None:
    rig = ConsumerRig(t=1)
    rig.stable("c", protocols=[("range", subscription("t"))])
    for epoch in (1, -1):
        request = ConsumerGroupHeartbeatRequest(**{**JOINING, "member_epoch": epoch})
        assert rig.heartbeat(request).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert code_of(lambda: rig.groups.described("g")) is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("protocols", "protocol_type", "assignment"),
    [
        ([("range", b"\x00\x01garbage")], "consumer", None),  # A subscription that cannot be read.
        ([("v1", subscription("t"))], "connect", None),  # Members that are no consumers.
        ([("mine", subscription("t"))], "consumer", b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01x"),
        ([("mine", subscription("t"))], "consumer", b"\x00"),
    ],
)
def test_a_group_that_cannot_be_understood_stays_classic(
    protocols: list[tuple[str, bytes]], protocol_type: str, assignment: bytes | None
) -> None:
    """A custom assignor's own data would be lost."""
    rig = ConsumerRig(t=1)
    member_id = rig.member("c")
    joined = rig.join("c", member_id, protocols=protocols, protocol_type=protocol_type)
    rig.wait(3000)
    rig.sync(member_id, joined.told.generation_id, {member_id: assignment or b""})
    written_count = len(rig.journal.log)
    answer = Consumer(rig, "a", ["t"]).join()
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert rig.kind == "classic" and len(rig.journal.log) == written_count
    assert rig.beat(member_id, 1) is ErrorCode.NONE


def test_what_librdkafka_leaves_in_its_assignments_is_no_obstacle() -> None:
    """Apache Kafka takes it for a custom assignor's, and refuses."""
    rig = ConsumerRig(t=1)
    member_id = rig.member("c")
    offered = [("cooperative-sticky", subscription("t"))]
    joined = rig.join("c", member_id, protocols=offered)
    rig.wait(3000)
    topic = [TopicPartition(topic="t", partitions=[0])]
    share = ConsumerProtocolAssignment(assigned_partitions=topic, user_data=b"owned")
    rig.sync(member_id, joined.told.generation_id, {member_id: share.to_bytes(0)})
    assert Consumer(rig, "a", ["t"]).join().error_code == 0
    assert rig.named(rig.held(member_id)) == ["t-0"]


def test_a_group_too_large_stays_classic() -> None:
    rig = ConsumerRig({"group.consumer.max.size": "1"}, t=1)
    rig.stable("c", "d", protocols=[("range", subscription("t"))])
    assert Consumer(rig, "a", ["t"]).join().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert rig.kind == "classic"


def test_a_group_too_large_for_a_classic_one_stays_as_it_is() -> None:
    settings = {"group.max.size": "1", "group.consumer.assignment.interval.ms": "0"}
    rig = ConsumerRig(settings, t=1)
    consumer = Consumer(rig, "a", ["t"])
    consumer.join()
    for name in ("c", "d"):
        ClassicConsumer(rig, name, ["t"]).steps()
    consumer.leave()
    assert rig.is_consumer_group and len(rig.known.members) == 2


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [
        ("connect", [("range", subscription("t"))]),
        ("consumer", [("sticky", subscription("t"))]),
        ("consumer", []),
    ],
)
def test_a_classic_member_with_nothing_in_common_is_refused(
    protocol_type: str, protocols: list[tuple[str, bytes]]
) -> None:
    rig = ConsumerRig(t=1)
    Consumer(rig, "a", ["t"]).join()
    rig.join("c", "c1", protocols=[("range", subscription("t"))])
    told = rig.join("d", "d1", protocol_type=protocol_type, protocols=protocols).told
    assert told.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert rig.known.members.keys() == {"a", "c1"}


def test_a_classic_member_whose_subscription_cannot_be_read_is_refused() -> None:
    rig = ConsumerRig(t=1)
    Consumer(rig, "a", ["t"]).join()
    told = rig.join("c", "c1", protocols=[("range", b"\x00\x01garbage")]).told
    assert told.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert rig.known.members.keys() == {"a"}


def test_a_classic_request_of_a_member_of_the_new_protocol_is_refused() -> None:
    rig = ConsumerRig(t=1)
    Consumer(rig, "a", ["t"]).join()
    assert rig.beat("a", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.sync("a", 2).told.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.beat("nobody", 2) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("field", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}])
def test_a_sync_for_another_protocol_is_refused(field: dict[str, Any]) -> None:
    rig = ConsumerRig(t=1)
    Consumer(rig, "a", ["t"]).join()
    generation = rig.join("c", "c1", protocols=[("range", subscription("t"))]).told.generation_id
    told = rig.sync("c1", generation, **field).told
    assert told.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert rig.sync("c1", generation, protocol_name="range").told.error_code == 0


def test_a_classic_member_is_told_to_join_again_until_it_does_and_then_is_out() -> None:
    """However often it is told, it has one rebalance timeout from the first time on."""
    rig = ConsumerRig({"group.consumer.assignment.interval.ms": "0"}, t=2)
    Consumer(rig, "a", ["t"]).join()
    offered = [("range", subscription("t"))]
    generation = rig.join("c", "c1", rebalance_ms=9000, protocols=offered).told.generation_id
    rig.sync("c1", generation)
    Consumer(rig, "b", ["t"]).join()
    for _ in range(3):
        assert rig.beat("c1", generation) is ErrorCode.REBALANCE_IN_PROGRESS
        rig.wait(3000)
    assert rig.beat("c1", generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_must_give_something_up_is_told_until_it_says_that_it_did() -> None:
    rig = ConsumerRig({"group.consumer.assignment.interval.ms": "0"}, t=2)
    classic = ClassicConsumer(rig, "c", ["t"])
    Consumer(rig, "a", ["u"]).join()
    classic.steps(3)
    assert rig.named(classic.owned) == ["t-0", "t-1"]
    Consumer(rig, "b", ["t"]).join()
    classic.steps(3)  # It is told, joins and syncs, and would join again by itself.
    assert (rig.named(classic.owned), classic.phase) == (["t-0"], "out")
    assert rig.known.members[classic.member_id].state is MemberState.UNREVOKED
    beaten = rig.beat(classic.member_id, classic.generation)
    assert beaten is ErrorCode.REBALANCE_IN_PROGRESS
    classic.steps(2)
    assert rig.beat(classic.member_id, classic.generation) is ErrorCode.NONE


def test_a_classic_member_whose_session_ended_unnoticed_must_give_up_everything() -> None:
    """Apache Kafka lets it in as a new member that believes to own what others have by now."""
    rig = ConsumerRig({"group.consumer.assignment.interval.ms": "0"}, t=2)
    Consumer(rig, "a", ["u"]).join()
    classic = ClassicConsumer(rig, "c", ["t"]).steps(3)
    rig.wait(10_000)
    assert classic.member_id not in rig.known.members
    classic.phase = "out"
    classic.step()
    assert (classic.last_error, classic.owned) == (ErrorCode.UNKNOWN_MEMBER_ID, set())


def test_members_of_a_group_that_was_upgraded_have_sessions() -> None:
    rig = ConsumerRig(t=1)
    classic = ClassicConsumer(rig, "c", ["t"]).steps(2)
    rig.wait(3000)
    classic.steps(2)
    assert (rig.kind, classic.phase) == ("classic", "in")
    Consumer(rig, "a", ["t"]).join()
    assert rig.known.members.keys() == {"a", classic.member_id}
    rig.wait(10_000)
    assert rig.known.members.keys() == {"a"}


def test_a_classic_member_is_answered_in_the_version_it_speaks() -> None:
    rig = ConsumerRig(t=1)
    Consumer(rig, "a", ["u"]).join()
    for version in range(4):
        member_id = f"c{version}"
        offered = ConsumerProtocolSubscription(topics=["t"]).to_bytes(version)
        joined = rig.join("c", member_id, protocols=[("range", offered)]).told
        assert read_prefix(rig.sync(member_id, joined.generation_id).told.assignment) == version


def test_what_a_static_member_left_behind_counts_as_assigned_from_the_beginning() -> None:
    """Whoever comes back in its place may commit for it in any epoch."""
    rig = ConsumerRig(t=2)
    consumer = Consumer(rig, "a", ["t"], instance_id="one")
    consumer.join()
    (before,) = rig.known.members["a"].assigned.values()
    consumer.leave(epoch=-2)
    (after,) = rig.known.members["a"].assigned.values()
    assert (before, after) == ({0: 2, 1: 2}, {0: 0, 1: 0})


def test_a_member_may_commit_what_it_is_about_to_give_up_in_the_epoch_it_got_it_in() -> None:
    rig = ConsumerRig({"group.consumer.assignment.interval.ms": "0"}, t=2)
    consumer = Consumer(rig, "a", ["t"])
    consumer.join()
    rig.make_topics(t=3)
    consumer.settle()
    consumer.beat()
    consumer.settle()
    for name in ("b", "c"):
        Consumer(rig, name, ["t"]).join()
    consumer.beat()
    member = rig.known.members["a"]
    assert (member.epoch, [*member.revoking.values()]) == (3, [{1: 2, 2: 3}])
    assert rig.commit(1, "a", 2, partition=0) is ErrorCode.NONE
    assert rig.commit(1, "a", 2, partition=1) is ErrorCode.NONE
    assert rig.commit(1, "a", 2, partition=2) is ErrorCode.STALE_MEMBER_EPOCH
    assert rig.commit(1, "a", 3, partition=2) is ErrorCode.NONE


def test_topics_are_looked_at_only_when_the_cluster_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []
    of_group = TopicHashes.of_group

    def count(self: TopicHashes, topics: Iterable[str], image: ClusterImage) -> int:
        looked.append("once")
        return of_group(self, topics, image)

    monkeypatch.setattr(TopicHashes, "of_group", count)
    rig = ConsumerRig(t=1)
    consumer = Consumer(rig, "a", ["t"])
    consumer.join()
    for _ in range(3):
        consumer.beat()
    assert len(looked) == 1
    rig.make_topics(u=1)
    for _ in range(3):
        consumer.beat()
    assert len(looked) == 2


def test_a_group_is_described_as_it_is() -> None:
    settings = {"group.consumer.assignment.interval.ms": "0"}
    rig = ConsumerRig(settings, t=2)
    first = Consumer(rig, "a", ["t"], instance_id="one")
    first.join()
    first.settle()
    Consumer(rig, "b", ["t"], pattern="x").join()
    first.beat()
    ClassicConsumer(rig, "c", ["t"]).steps(2)
    told = rig.groups.described("g")
    assert (told.group_id, told.group_state, told.assignor_name) == ("g", "Reconciling", "uniform")
    assert (told.group_epoch, told.assignment_epoch) == (4, 4)
    one, two, three = sorted(told.members, key=lambda member: member.client_id)
    assert (one.member_id, one.instance_id, one.member_epoch, one.member_type) == ("a", "one", 2, 1)
    (owned,), (target,) = one.assignment.topic_partitions, one.target_assignment.topic_partitions
    # What it has yet to give up is still its own.
    assert (owned.topic_name, owned.partitions, target.partitions) == ("t", [0, 1], [0])
    assert (two.subscribed_topic_names, two.subscribed_topic_regex) == (["t"], "x")
    assert (three.member_type, three.client_host) == (0, "/127.0.0.1")


def test_groups_are_listed_with_their_kind_and_state() -> None:
    rig = ConsumerRig(t=1)
    Consumer(rig, "a", ["t"]).join()
    rig.stable("c", group_id="old")
    listed = {g.group_id: (g.group_type, g.group_state) for g in rig.shard.listed([], [])}
    assert listed == {"g": ("consumer", "Stable"), "old": ("classic", "Stable")}
    assert [g.group_id for g in rig.shard.listed([], ["Consumer"])] == ["g"]
    assert [g.group_id for g in rig.shard.listed(["assigning"], [])] == []


def test_only_members_of_this_epoch_may_ask_for_offsets() -> None:
    rig = ConsumerRig(t=1)
    Consumer(rig, "a", ["t"]).join()
    check = rig.shard.commits.check_fetch
    assert code_of(lambda: check("g", None, -1)) is ErrorCode.NONE
    assert code_of(lambda: check("g", "a", 2)) is ErrorCode.NONE
    assert code_of(lambda: check("g", "a", 1)) is ErrorCode.STALE_MEMBER_EPOCH
    assert code_of(lambda: check("g", "b", 2)) is ErrorCode.UNKNOWN_MEMBER_ID
    classic = ClassicConsumer(rig, "c", ["t"]).steps(2)
    refused = code_of(lambda: check("g", classic.member_id, 7))
    assert refused is ErrorCode.ILLEGAL_GENERATION


def test_a_member_that_commits_in_a_version_without_epochs_is_refused() -> None:
    rig = ConsumerRig(t=1)
    Consumer(rig, "a", ["t"]).join()
    group = rig.groups.group("g")

    def commit(claim: MemberClaim, version: int, *, is_transactional: bool = False) -> ErrorCode:
        return code_of(
            lambda: group.admit_commit(
                claim, [("t", 0)], version=version, is_transactional=is_transactional
            )
        )

    assert commit(MemberClaim("a", 2), 8) is ErrorCode.UNSUPPORTED_VERSION
    assert commit(MemberClaim("a", 2), 9) is ErrorCode.NONE
    # A transaction's commit has versions of its own, and its own word for an old epoch.
    assert commit(MemberClaim("a", 2), 3, is_transactional=True) is ErrorCode.NONE
    assert commit(MemberClaim("a", 3), 3, is_transactional=True) is ErrorCode.ILLEGAL_GENERATION
    assert commit(MemberClaim(), 3, is_transactional=True) is ErrorCode.NONE
    assert commit(MemberClaim(), 9) is ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_subscribed_topics_do_not_expire_and_are_not_deleted() -> None:
    rig = ConsumerRig({"offsets.retention.minutes": "1"}, t=1, u=1)
    consumer = Consumer(rig, "a", ["t"])
    consumer.join()
    for topic in ("t", "u"):
        assert rig.commit(5, "a", 2, topic=topic) is ErrorCode.NONE
    refused = rig.shard.commits.delete("g", [("t", 0), ("u", 0)])
    assert refused == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
    assert rig.commit(5, "a", 2, topic="u") is ErrorCode.NONE
    for _ in range(3):
        rig.wait(30_000)
        consumer.beat()
    assert rig.shard.expire("g") == 1
    assert (rig.offset("t"), rig.offset("u")) == (5, None)
    consumer.leave()
    rig.wait(60_000)
    assert rig.shard.expire("g") == 1
    assert rig.shard.groups == {}, "nobody is in it, and nothing is left of it"
    rig.reload()
    assert rig.shard.groups == {}


def test_only_an_empty_group_is_deleted() -> None:
    rig = ConsumerRig(t=1)
    consumer = Consumer(rig, "a", ["t"])
    consumer.join()
    assert code_of(lambda: rig.shard.delete_group("g")) is ErrorCode.NON_EMPTY_GROUP
    consumer.leave()
    rig.shard.delete_group("g")
    rig.reload()
    assert rig.shard.groups == {}


def test_the_heartbeat_interval_is_the_groups_own() -> None:
    rig = ConsumerRig(t=1)
    consumer = Consumer(rig, "a", ["t"])
    assert consumer.join().heartbeat_interval_ms == 5000
    rig.configure_group(consumer_heartbeat_interval_ms="7000")
    assert consumer.beat().heartbeat_interval_ms == 7000
    rig.configure_group(consumer_heartbeat_interval_ms="soon")  # As another version may store it.
    assert consumer.beat().heartbeat_interval_ms == 5000


def test_assignors_may_be_named_by_kafkas_classes() -> None:
    named = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
    rig = ConsumerRig({"group.consumer.assignors": f"{named},com.example.Mine,uniform"})
    assert list(assignors(rig.config)) == ["range", "uniform"]
    rig = ConsumerRig({"group.consumer.assignors": "com.example.Mine"})
    assert list(assignors(rig.config)) == ["uniform", "range"]


def test_what_an_old_release_stored_of_topics_is_removed_with_the_next_subscription() -> None:
    rig = ConsumerRig(t=1)
    key = ConsumerGroupPartitionMetadataKey(group_id="g").to_bytes()
    value = ConsumerGroupPartitionMetadataValue().to_bytes(0)
    rig.journal.write([(key, value)])
    rig.reload()
    assert rig.known.has_partition_metadata
    Consumer(rig, "a", ["t"]).join()
    assert not rig.known.has_partition_metadata
    rig.reload()
    assert not rig.known.has_partition_metadata


def test_a_record_that_cannot_be_read_is_left_out() -> None:
    rig = ConsumerRig(t=1)
    Consumer(rig, "a", ["t"]).join()
    rig.journal.write([(b"\x00\x05\x00\x01g\x00\x01b", b"\x00\x63"), (b"\x00\x08\x00\x09g", b"")])
    rig.reload()
    assert rig.known.members.keys() == {"a"}
    assert sum("is left out" in line for line in rig.reports) == 2


def test_the_end_of_what_was_never_seen_is_no_group() -> None:
    rig = ConsumerRig(t=1)
    rig.journal.write([(b"\x00\x05\x00\x01g\x00\x01b", None), (b"\x00\x03\x00\x01g", None)])
    rig.reload()
    assert rig.shard.groups == {}


def test_a_pattern_that_takes_too_long_by_now_keeps_the_topics_it_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = ConsumerRig({"group.consumer.assignment.interval.ms": "0"}, t1=1)
    consumer = Consumer(rig, "a", pattern="(t|u).")
    consumer.join()
    monkeypatch.setattr("penstock.groups.patterns.pattern.EFFORT_S_MAX", -1.0)
    rig.make_topics(u1=1, u2=1)
    rig.wait(20_000)
    answer = consumer.beat()
    assert (answer.error_code, rig.named(consumer.told)) == (0, ["t1-0"])
    assert any("takes too long" in line for line in rig.reports)
