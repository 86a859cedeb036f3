"""What the script of access rules plays beside its plain requests: topics by their ids, members of
KIP-848 groups, and delegation tokens. Each needs something that only an earlier answer tells.
"""

import base64
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.integration.security.acl_script import PASSWORD, as_user, fitted, plain
from tests.support.batches import batch
from tests.support.processes import HOST
from tests.support.waiting import eventually

from penstock.client.wire.connection import BrokerConnection
from penstock.client.wire.security import Security
from penstock.protocol.apis import Request
from penstock.protocol.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    create_delegation_token,
    create_topics,
    delete_topics,
    describe_delegation_token,
    expire_delegation_token,
    fetch,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
    renew_delegation_token,
)

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SCRAM_LISTENER = "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config"
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    SCRAM_LISTENER: f"{SCRAM_MODULE} required;",
    "delegation.token.secret.key": "the secret of the cluster",
}
NAMES = ("secret", "absent")
JOINING, LEAVING = 0, -1
FIRST = 1  # Of the requests about tokens in Apache Kafka 4.

Answers = Iterator[tuple[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Who plays, and what the earlier acts left."""

    admin: BrokerConnection  # On the listener without SASL.
    alice: BrokerConnection
    port: int
    ids: Mapping[str, bytes]  # Of topics; of one that is not there, too.
    foreign_secret: bytes  # The HMAC of a token of bob's.
    seen: list[Any] = field(default_factory=list)  # Answers as they came.

    def both(self, name: str, request: Request, *, oldest: int = FIRST) -> Answers:
        """The oldest and the newest version that both sides speak."""
        spoken = self.alice.versions(request.api_key)
        for version in sorted({max(oldest, spoken[0]), spoken[-1]}):
            answer = self.alice.request(fitted(request, version), version)
            self.seen.append(answer)
            yield f"{name} v{version}", plain(answer, name)

    def last(self, request: Request) -> Any:
        return self.alice.request(request, self.alice.versions(request.api_key)[-1])


def set_stage(admin: BrokerConnection, alice: BrokerConnection, port: int) -> Stage:
    topics = [metadata.MetadataRequestTopic(name=name) for name in ("secret", "open")]
    asked = metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    answer: Any = admin.request(asked, 12)
    ids = {topic.name: topic.topic_id for topic in answer.topics}
    ids["absent"] = uuid.UUID("12345678-1234-4678-9234-567812345678").bytes
    with as_user(port, "admin", "admin-secret") as other:
        secret = _known_secrets(other, requester="admin")[0]
    return Stage(admin=admin, alice=alice, port=port, ids=ids, foreign_secret=secret)


def _known_secrets(connection: BrokerConnection, requester: str = "") -> list[bytes]:
    """Of the tokens that somebody sees."""
    asked = describe_delegation_token.DescribeDelegationTokenRequest(owners=None)
    answer: Any = connection.request(asked, 3)
    return [
        bytes(token.hmac)
        for token in answer.tokens
        if requester in ("", token.token_requester_principal_name)
    ]


def prepare_plays(admin: BrokerConnection, port: int) -> None:
    """A topic that many may see, and a token that is bob's."""
    made = create_topics.CreatableTopic(name="open", num_partitions=1, replication_factor=1)
    admin.request(create_topics.CreateTopicsRequest(topics=[made], timeout_ms=30_000), 7)
    wanted = create_delegation_token.CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="bob", max_lifetime_ms=-1
    )
    with as_user(port, "admin", "admin-secret") as other:
        eventually(lambda: other.request(wanted, 3).error_code == 0)  # type: ignore[attr-defined]


def _principal(kind: Callable[..., Any], name: str, type_name: str = "User") -> Any:
    return kind(principal_type=type_name, principal_name=name)


# Topics by their ids


def topics_by_id(stage: Stage) -> Answers:
    ids = [stage.ids[name] for name in NAMES]
    topics = [metadata.MetadataRequestTopic(topic_id=one, name=None) for one in ids]
    bits = {"include_topic_authorized_operations": True, "allow_auto_topic_creation": False}
    yield from stage.both(
        "metadata by id", metadata.MetadataRequest(topics=topics, **bits), oldest=12
    )
    yield from stage.both("produce by id", _produce(ids), oldest=13)
    yield from stage.both("fetch by id", _fetch(ids), oldest=13)
    yield from stage.both("commit by id", _commit(ids), oldest=10)
    yield from stage.both("fetch offsets by id", _fetch_offsets(ids), oldest=10)
    doomed = [delete_topics.DeleteTopicState(name=None, topic_id=one) for one in ids]
    asked = delete_topics.DeleteTopicsRequest(timeout_ms=5000, topics=doomed)
    yield from stage.both("delete topics by id", asked, oldest=6)


def _produce(ids: Sequence[bytes]) -> Request:
    return produce.ProduceRequest(
        acks=1,
        timeout_ms=5000,
        topic_data=[
            produce.TopicProduceData(
                topic_id=one,
                partition_data=[produce.PartitionProduceData(index=0, records=batch([b"v"]))],
            )
            for one in ids
        ],
    )


def _fetch(ids: Sequence[bytes]) -> Request:
    return fetch.FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
        topics=[
            fetch.FetchTopic(
                topic_id=one,
                partitions=[
                    fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
                ],
            )
            for one in ids
        ],
    )


def _commit(ids: Sequence[bytes]) -> Request:
    part = offset_commit.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=0, committed_metadata=""
    )
    return offset_commit.OffsetCommitRequest(
        group_id="g",
        topics=[
            offset_commit.OffsetCommitRequestTopic(topic_id=one, partitions=[part]) for one in ids
        ],
    )


def _fetch_offsets(ids: Sequence[bytes]) -> Request:
    topics = [
        offset_fetch.OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0]) for one in ids
    ]
    groups = [
        offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=wanted)
        for group in ("g", "other")
        for wanted in (topics, None)
    ]
    return offset_fetch.OffsetFetchRequest(groups=groups[::2])


# Members of groups (KIP-848)


def members(stage: Stage) -> Answers:
    for name, subscription in (
        ("what is there", {"subscribed_topic_names": ["secret"]}),
        ("what is not", {"subscribed_topic_names": ["secret", "absent"]}),
        ("by pattern", {"subscribed_topic_names": [], "subscribed_topic_regex": ".*"}),
    ):
        group = f"members of {name}"
        answer = _settled(stage.alice, group, str(uuid.uuid4()), subscription)
        yield f"join for {name}", _outcome(stage, answer)
        described = consumer_group_describe.ConsumerGroupDescribeRequest(
            group_ids=[group], include_authorized_operations=True
        )
        for title, found in stage.both(f"describe {group}", described, oldest=0):
            yield title, _without_chance(found)
        if not answer.error_code:
            stage.last(_beat(group, answer.member_id, LEAVING, {}))


def hidden_members(stage: Stage) -> Answers:
    """A group with a member that reads what alice may not know of."""
    group, member = "g of the admin", str(uuid.uuid4())
    names = {"subscribed_topic_names": ["secret", "open"]}
    _settled(stage.admin, group, member, names)
    described = consumer_group_describe.ConsumerGroupDescribeRequest(
        group_ids=[group], include_authorized_operations=True
    )
    for title, found in stage.both("describe the admin's group", described, oldest=0):
        yield title, _without_chance(found)
    stage.admin.request(_beat(group, member, LEAVING, {}), 1)


def _settled(
    connection: BrokerConnection, group: str, member: str, subscription: dict[str, Any]
) -> Any:
    """The member's first assignment; a pattern is looked up while it waits."""
    answer: Any = connection.request(_beat(group, member, JOINING, subscription), 1)
    if answer.error_code:
        return answer
    found = [answer]

    def has_assignment() -> bool:
        if not any(one.assignment and one.assignment.topic_partitions for one in found):
            found.append(connection.request(_beat(group, member, found[-1].member_epoch, {}), 1))
        given = found[-1].assignment
        return bool(found[-1].error_code or (given and given.topic_partitions))

    eventually(has_assignment, every_s=0.1)
    return found[-1]


def _beat(group: str, member: str, epoch: int, subscription: dict[str, Any]) -> Request:
    joining = {"rebalance_timeout_ms": 60_000, "topic_partitions": []} if epoch == JOINING else {}
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, **joining, **subscription
    )


def _outcome(stage: Stage, answer: Any) -> dict[str, Any]:
    names = {topic_id: name for name, topic_id in stage.ids.items()}
    given = answer.assignment.topic_partitions if answer.assignment else []
    return {
        "error_code": answer.error_code,
        "has_member": bool(answer.member_id),
        "assigned": sorted([names.get(one.topic_id, "another"), one.partitions] for one in given),
    }


def _without_chance(found: Any) -> Any:
    """Epochs and ids of members say how long a lookup took, and nothing of rights."""
    for group in found["groups"]:
        group["group_epoch"] = group["assignment_epoch"] = group["group_state"] = "apart"
        for member in group["members"]:
            for name in ("member_id", "member_epoch", "client_id", "client_host"):
                member[name] = "apart"
    return found


# Delegation tokens


def tokens(stage: Stage) -> Answers:
    yield from _creations(stage)
    yield from _lives(stage)
    owner = describe_delegation_token.DescribeDelegationTokenOwner
    for name, owners in (
        ("everybody", None),
        ("nobody", []),
        ("alice", [_principal(owner, "alice")]),
        ("bob", [_principal(owner, "bob")]),
    ):
        asked = describe_delegation_token.DescribeDelegationTokenRequest(owners=owners)
        yield from stage.both(f"describe tokens of {name}", asked)


def _creations(stage: Stage) -> Answers:
    kind = create_delegation_token.CreateDelegationTokenRequest
    renewer = create_delegation_token.CreatableRenewers
    yield from stage.both(
        "create token", kind(renewers=[_principal(renewer, "carol")], max_lifetime_ms=-1)
    )
    yield from stage.both(
        "create token with a bad renewer",
        kind(renewers=[_principal(renewer, "g", "Group")], max_lifetime_ms=-1),
    )
    for_bob = kind(owner_principal_type="User", owner_principal_name="bob", max_lifetime_ms=-1)
    yield from stage.both("create token for bob", for_bob, oldest=3)
    made = {bytes(one.hmac) for one in stage.seen if one.api_key == kind.api_key and one.hmac}
    eventually(lambda: made <= set(_known_secrets(stage.alice)))  # Each broker learns of it.
    yield "create token in the open", plain(stage.admin.request(kind(), 3))


def _lives(stage: Stage) -> Answers:
    """A token's life from its creation to after its end, of ours and of somebody else's."""
    made = stage.last(create_delegation_token.CreateDelegationTokenRequest(max_lifetime_ms=-1))
    yield "by a token", _by_token(stage, made)
    own, foreign, unknown = bytes(made.hmac), stage.foreign_secret, b"nobody's"
    for name, secret in (("own", own), ("bob's", foreign), ("nobody's", unknown)):
        renew = renew_delegation_token.RenewDelegationTokenRequest(hmac=secret, renew_period_ms=-1)
        yield from stage.both(f"renew {name}", renew)
        expire = expire_delegation_token.ExpireDelegationTokenRequest(
            hmac=secret, expiry_time_period_ms=3_600_000
        )
        yield from stage.both(f"expire {name}", expire)
    end = expire_delegation_token.ExpireDelegationTokenRequest(hmac=own, expiry_time_period_ms=-1)
    yield "end own", plain(stage.last(end))
    eventually(lambda: own not in _known_secrets(stage.alice))
    yield from stage.both("end own again", end)
    for name, asked in (
        ("renew", renew_delegation_token.RenewDelegationTokenRequest(hmac=own, renew_period_ms=1)),
        ("expire", end),
    ):
        answer: Any = stage.admin.request(asked, 2)
        yield f"{name} in the open", plain(answer)


def _by_token(stage: Stage, made: Any) -> dict[str, Any]:
    """What somebody is told who came by a token: who they are, and that it gives no other."""
    password = base64.b64encode(bytes(made.hmac)).decode()
    security = Security.from_settings(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{SCRAM_MODULE} required username="{made.token_id}" '
            f'password="{password}" tokenauth="true";',
        }
    )

    def is_known() -> bool:
        return bool(_try(stage.port, security))

    eventually(is_known)
    return _try(stage.port, security)


def _try(port: int, security: Security) -> dict[str, Any]:
    from penstock.client.errors import AuthenticationError

    asked: tuple[tuple[Request, int], ...] = (
        (create_delegation_token.CreateDelegationTokenRequest(), 3),
        (renew_delegation_token.RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=1), 2),
        (
            expire_delegation_token.ExpireDelegationTokenRequest(
                hmac=b"x", expiry_time_period_ms=1
            ),
            2,
        ),
        (describe_delegation_token.DescribeDelegationTokenRequest(owners=None), 3),
    )
    try:
        with BrokerConnection(HOST, port, timeout_s=120, security=security) as bearer:
            return {
                type(request).__name__: plain(bearer.request(request, version))
                for request, version in asked
            }
    except AuthenticationError:
        return {}


PLAYS = (topics_by_id, members, hidden_members, tokens)


def play(admin: BrokerConnection, port: int) -> Answers:
    """All of it under the rules of the moment."""
    with as_user(port, "alice", PASSWORD) as alice:
        stage = set_stage(admin, alice, port)
        for act in PLAYS:
            yield from act(stage)
