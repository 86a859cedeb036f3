"""The same group requests to Penstock and to Apache Kafka, in every version both speak.

One story is told to both: good requests and bad ones, in an order in which later ones see what
earlier ones did. Sentences and random ids are not compared.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.outside import needs
from tests.support.processes import HOST, ServerProcess
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

from penstock.client.wire.connection import BrokerConnection
from penstock.protocol.apis import Request
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.list_groups import ListGroupsRequest
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.protocol.schema import Struct

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

Ask = Callable[..., Any]
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "offset.metadata.max.bytes": "100",
}
LEFT_OVER = "fresh"  # A failed first join leaves an empty group behind in Kafka, and here none.
NOBODYS_ID = b"\x05" * 16
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UNTOLD = {"error_message", "throttle_time_ms"}
_ORDERED_BY = ("group_id", "name", "topic_id", "partition_index", "member_id")


# Requests


def commit(
    group: str, *offsets: tuple[str, int, int], ids: dict[str, bytes] | None = None, **fields: Any
) -> Request:
    note = fields.pop("note", "")
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name="" if ids else topic,
                topic_id=(ids or {}).get(topic, NOBODYS_ID),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=note
                    )
                ],
            )
            for topic, index, offset in offsets
        ],
        **fields,
    )


def fetch_one(group: str, *wanted: tuple[str, int]) -> Request:
    topics = [OffsetFetchRequestTopic(name=name, partition_indexes=[i]) for name, i in wanted]
    return OffsetFetchRequest(group_id=group, topics=topics)


def fetch_many(
    *groups: str,
    wanted: list[tuple[str, int]] | None = None,
    ids: dict[str, bytes] | None = None,
) -> Request:
    topics = wanted and [
        OffsetFetchRequestTopics(
            name="" if ids else name,
            topic_id=(ids or {}).get(name, NOBODYS_ID),
            partition_indexes=[index],
        )
        for name, index in wanted
    ]
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=topics) for group in groups]
    )


def delete_offsets(group: str, *partitions: tuple[str, int]) -> Request:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
            )
            for name, index in partitions
        ],
    )


def join(group: str, member_id: str = "", **fields: Any) -> Request:
    return JoinGroupRequest(
        **{
            "group_id": group,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 30_000,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"\0\1\0\0\0\0")],
            **fields,
        }
    )


def sync(group: str, member_id: str, generation: int, **fields: Any) -> Request:
    return SyncGroupRequest(
        **{
            "group_id": group,
            "generation_id": generation,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")],
            **fields,
        }
    )


def beat(group: str, member_id: str, generation: int, **fields: Any) -> Request:
    return HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id, **fields)


def leave(group: str, *members: tuple[str, str | None]) -> Request:
    return LeaveGroupRequest(
        group_id=group,
        members=[MemberIdentity(member_id=m, group_instance_id=i) for m, i in members],
    )


# The story, chapter by chapter


def offsets_of_loners(ask: Ask, ids: dict[str, bytes]) -> None:
    for version in range(2, 10):
        ask(f"commit v{version}", commit(f"v{version}", ("t", 0, version)), version)
        ask(f"commit to no topic v{version}", commit("l", ("t", 0, 1), ("none", 0, 1)), version)
        stranger = {"generation_id_or_member_epoch": 3, "member_id": "m"}
        ask(f"commit of a stranger v{version}", commit("new", ("t", 0, 1), **stranger), version)
        ask(f"commit of no offset v{version}", commit("l", ("t", 0, -5)), version)
        ask(f"commit to no partition v{version}", commit("l", ("t", 77, 3)), version)
        ask(f"too large a note v{version}", commit("l", ("t", 1, 1), note="x" * 101), version)
    ask("commit v10", commit("v10", ("t", 0, 10), ids=ids), 10)
    ask("commit to no id", commit("v10", ("t", 0, 10), ("none", 0, 1), ids=ids), 10)
    ask("commit to no partition of an id", commit("v10", ("t", 9, 10), ids=ids), 10)
    ask("commit to the empty group", commit("", ("t", 0, 4)), 8)
    ask("commit of an epoch alone", commit("l", ("t", 0, 1), generation_id_or_member_epoch=0), 8)
    ask("commit of a member alone", commit("l", ("t", 0, 1), member_id="m"), 8)
    ask("commit of an instance alone", commit("l", ("t", 0, 1), group_instance_id="i"), 8)


def asking_for_offsets(ask: Ask, ids: dict[str, bytes]) -> None:
    for version in range(1, 8):
        wanted = fetch_one("l", ("t", 0), ("t", 1), ("u", 0), ("none", 0))
        ask(f"fetch v{version}", wanted, version)
        ask(f"fetch of no group v{version}", fetch_one("none", ("t", 0)), version)
        if version >= 2:
            everything = OffsetFetchRequest(group_id="l", topics=None)
            ask(f"fetch of everything v{version}", everything, version)
    for version in (8, 9):
        ask(f"fetch of groups v{version}", fetch_many("l", "v5", "none", ""), version)
        asked = fetch_many("l", wanted=[("t", 0), ("none", 0), ("u", 9)])
        ask(f"fetch by name v{version}", asked, version)
    ask("fetch by id", fetch_many("l", wanted=[("t", 0), ("none", 0), ("u", 9)], ids=ids), 10)
    ask("fetch of everything by id", fetch_many("l", "v10"), 10)
    ask("fetch of no group at all", OffsetFetchRequest(groups=[]), 8)


def deleting_offsets(ask: Ask, _ids: dict[str, bytes]) -> None:
    ask("delete offsets", delete_offsets("l", ("t", 0), ("none", 0)), 0)
    ask("delete an offset of no partition", delete_offsets("l", ("t", 9)), 0)
    ask("what is left", fetch_many("l"), 8)
    ask("delete offsets of no group", delete_offsets("none", ("t", 0)), 0)
    ask("delete offsets of the empty group", delete_offsets("", ("t", 0)), 0)


def members(ask: Ask, _ids: dict[str, bytes]) -> None:
    for version in range(2, 10):
        group = f"members v{version}"
        told = ask(f"first join v{version}", join(group), version)
        if version >= 4:
            told = ask(f"second join v{version}", join(group, told.member_id), version)
        member = told.member_id
        ask(f"join again v{version}", join(group, member), version)
        ask(f"join of nobody v{version}", join(group, "nobody"), version)
        ask(f"join too short v{version}", join(group, session_timeout_ms=1), version)
        ask(f"join of another type v{version}", join(group, protocol_type="x"), version)
        ask(f"join of no type v{version}", join(LEFT_OVER, protocol_type=""), version)
        ask(f"join of no protocols v{version}", join(LEFT_OVER, protocols=[]), version)
        ask(f"join of no group v{version}", join(""), version)
        ask(f"join of a dead group v{version}", join(LEFT_OVER, "m"), version)
        ask(f"members v{version}", DescribeGroupsRequest(groups=[group]), min(version, 6))
        if version >= 5:
            fenced = join(group, member, group_instance_id="i")
            ask(f"join of no instance v{version}", fenced, version)


def syncing(ask: Ask, _ids: dict[str, bytes]) -> None:
    for version in range(6):
        group = f"sync v{version}"
        member = ask(f"join for sync v{version}", join(group), 3).member_id
        ask(f"sync of nobody v{version}", sync(group, "nobody", 1), version)
        if version >= 5:
            ask("sync of another protocol", sync(group, member, 1, protocol_name="x"), version)
        ask(f"early sync v{version}", sync(group, member, 2), version)
        ask(f"late sync v{version}", sync(group, member, 0), version)
        ask(f"early beat v{version}", beat(group, member, 1), min(version, 4))
        commit_now = commit(group, ("t", 0, 1), generation_id_or_member_epoch=1, member_id=member)
        ask(f"early commit v{version}", commit_now, 8)
        ask(f"sync v{version}", sync(group, member, 1), version)
        ask(f"sync again v{version}", sync(group, member, 1, assignments=[]), version)
        ask(f"sync of no group v{version}", sync("none", "m", 1), version)
        ask(f"sync of the empty group v{version}", sync("", "m", 1), version)
        ask(f"commit v{version} of a member", commit_now, 8)
        ask(f"describe v{version}", DescribeGroupsRequest(groups=[group]), version)
        if version >= 5:
            ask("sync without protocol", sync(group, member, 1, protocol_type=None), version)
        for beat_version in range(5):
            name = f"sync v{version}, beat v{beat_version}"
            ask(name, beat(group, member, 1), beat_version)
            ask(f"{name} of the past", beat(group, member, 0), beat_version)
            ask(f"{name} of nobody", beat(group, "x", 1), beat_version)
            ask(f"{name} of no group", beat("none", member, 1), beat_version)
            ask(f"{name} of the empty group", beat("", member, 1), beat_version)
        ask(f"delete busy v{version}", DeleteGroupsRequest(groups_names=[group]), 2)
        ask(f"delete busy offsets v{version}", delete_offsets(group, ("t", 0), ("u", 0)), 0)
        if version < 3:
            request = LeaveGroupRequest(group_id=group, member_id=member)
            ask(f"leave v{version}", request, version)
            ask(f"leave again v{version}", request, version)
            ask(f"leave none v{version}", LeaveGroupRequest(group_id="none"), version)
        else:
            ask(f"leave v{version}", leave(group, (member, None), ("x", None)), version)
            ask(f"leave again v{version}", leave(group, (member, None), ("", "i")), version)
            ask(f"leave none v{version}", leave("none", (member, None)), version)
            ask(f"nobody leaves v{version}", leave(group), version)
        ask(f"left v{version}", DescribeGroupsRequest(groups=[group]), version)


def describing(ask: Ask, _ids: dict[str, bytes]) -> None:
    for version in range(7):
        asked = DescribeGroupsRequest(groups=["l", "none", "sync v3", ""])
        ask(f"describe groups v{version}", asked, version)
        if version >= 3:
            asked = DescribeGroupsRequest(groups=["l"], include_authorized_operations=True)
            ask(f"what may be done v{version}", asked, version)
    for version in range(6):
        ask(f"list v{version}", ListGroupsRequest(), version)
    for states in (["Empty"], ["stable"], ["Dead"], ["nonsense"], ["EMPTY", "Stable"]):
        ask(f"list states {states}", ListGroupsRequest(states_filter=states), 4)
    for types in (["classic"], ["Consumer"], ["share"], ["nonsense"], ["Classic", "consumer"]):
        ask(f"list types {types}", ListGroupsRequest(types_filter=types), 5)


def deleting(ask: Ask, _ids: dict[str, bytes]) -> None:
    for version in range(3):
        names = [f"v{version + 2}", "none", "", f"v{version + 2}", "members v9"]
        ask(f"delete groups v{version}", DeleteGroupsRequest(groups_names=names), version)
        ask(f"left of v{version + 2}", fetch_many(f"v{version + 2}"), 8)


CHAPTERS = (
    offsets_of_loners,
    asking_for_offsets,
    deleting_offsets,
    members,
    syncing,
    describing,
    deleting,
)


# Telling and comparing


def plain(value: Any) -> Any:
    """An answer without what may differ; results whose order means nothing are in one order."""
    if isinstance(value, Struct):
        return {name: plain(getattr(value, name)) for name in value.fields if name not in _UNTOLD}
    if isinstance(value, list):
        items = [plain(item) for item in value if getattr(item, "group_id", "") != LEFT_OVER]
        return sorted(items, key=_place) if items and isinstance(items[0], dict) else items
    if isinstance(value, str):
        return _UUID.sub("#", value)
    if isinstance(value, bytes) and len(value) == 16:
        return "an id" if any(value) else "no id"
    return value


def _place(item: dict[str, Any]) -> list[str]:
    return [*(str(item.get(name)) for name in _ORDERED_BY), str(item)]


def tell(server: ServerProcess) -> dict[str, dict[str, Any]]:
    """Every answer to every chapter."""
    with RawConnection(server.port) as raw:
        for topic in ("t", "u"):
            assert raw.create_topic(topic, partitions=2) == 0
    answers: dict[str, dict[str, Any]] = {chapter.__name__: {} for chapter in CHAPTERS}
    with BrokerConnection(HOST, server.port, client_id="teller", timeout_s=120) as connection:
        eventually(lambda: _is_ready(connection), timeout_s=120, what="the coordinators")
        ids = _topic_ids(connection)
        for chapter in CHAPTERS:
            told = answers[chapter.__name__]

            def ask(name: str, request: Request, version: int, told: Any = told) -> Any:
                assert name not in told, name
                response = connection.request(request, version)
                told[name] = plain(response)
                return response

            chapter(ask, ids)
    return answers


def _is_ready(connection: BrokerConnection) -> bool:
    keys = [f"group {number}" for number in range(20)]
    found: Any = connection.request(FindCoordinatorRequest(key_type=0, coordinator_keys=keys), 4)
    if any(coordinator.error_code for coordinator in found.coordinators):
        return False
    described: Any = connection.request(DescribeGroupsRequest(groups=keys), 5)
    return not any(group.error_code for group in described.groups)


def _topic_ids(connection: BrokerConnection) -> dict[str, bytes]:
    wanted = [MetadataRequestTopic(name=name) for name in ("t", "u")]
    told: Any = connection.request(MetadataRequest(topics=wanted), 12)
    return {topic.name: topic.topic_id for topic in told.topics}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, Any]]]:
    """What we said and what Kafka said."""
    jars = needs(CURRENT)
    servers: list[ServerProcess] = [
        BrokerProcess(tmp_path_factory.mktemp("ours"), SETTINGS),
        KafkaProcess(jars, tmp_path_factory.mktemp("theirs"), SETTINGS),
    ]
    answers = []
    for server in servers:
        with server:
            server.start()
            answers.append(tell(server))
            server.stop()
    assert "Traceback" not in servers[0].log
    return answers


@pytest.mark.parametrize("chapter", [chapter.__name__ for chapter in CHAPTERS])
def test_the_answers_are_those_of_apache_kafka(
    both: list[dict[str, dict[str, Any]]], chapter: str
) -> None:
    ours, theirs = both[0][chapter], both[1][chapter]
    different = {
        name: {"ours": ours[name], "theirs": theirs[name]}
        for name in ours
        if ours[name] != theirs[name]
    }
    assert different == {}
