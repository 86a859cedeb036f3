"""A broker full of secrets, and every request that somebody without any right could send it.

Names are drawn by chance, so that they cannot be in an answer unless somebody put them there. A
request is filled in by the names of its fields: with secrets that the stranger is said to know,
with names of the stranger's own, with nulls, with nothing.
"""

import functools
import secrets
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Final

from tests.support.batches import batch
from tests.support.waiting import eventually

from penstock.broker.dispatch import HANDLERS, REFUSED, versions_of
from penstock.client.wire.connection import BrokerConnection
from penstock.protocol.apis import ApiKey, request_class
from penstock.protocol.headers import encode_request_header
from penstock.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_user_scram_credentials,
    consumer_group_heartbeat,
    create_acls,
    create_topics,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    metadata,
    offset_commit,
    produce,
    sync_group,
)
from penstock.protocol.schema import Field, Struct

TRANSACTIONAL: Final = 0x10
KNOWABLE: Final = ("topic", "id", "group", "transaction")
CORRELATION_ID: Final = 77


def _unguessable() -> str:
    return f"secret-{secrets.token_hex(12)}"


@dataclass(slots=True, kw_only=True)
class Secrets:
    """What only the administrator knows."""

    topic: str = field(default_factory=_unguessable)
    other_topic: str = field(default_factory=_unguessable)
    group: str = field(default_factory=_unguessable)
    new_group: str = field(default_factory=_unguessable)  # Of the new consumer protocol.
    transaction: str = field(default_factory=_unguessable)
    user: str = field(default_factory=_unguessable)
    client: str = field(default_factory=_unguessable)
    ids: dict[str, bytes] = field(default_factory=dict)  # Topic ids by topic.
    member: str = ""
    session_id: int = 0
    producer_id: int = -1

    @property
    def topic_id(self) -> bytes:
        return next(iter(self.ids.values()))

    @property
    def searched(self) -> dict[str, bytes]:
        """What must not be in an answer, as it would stand there."""
        names = ("topic", "other_topic", "group", "new_group", "transaction", "user", "client")
        texts = {name: getattr(self, name).encode() for name in names}
        return texts | {f"id of {name}": found for name, found in self.ids.items()}

    def with_absent_names(self) -> "Secrets":
        """The same, of things that are not there; names are as long."""
        names = ("topic", "group", "transaction")
        return replace(self, **{name: _unguessable() for name in names})


# Making the secrets


def keep_secrets(admin: BrokerConnection) -> Secrets:
    """Make topics, groups and a transaction that are all at work."""
    kept = Secrets()
    _make_topics(admin, kept)
    for kind, key in ((0, kept.group), (1, kept.transaction)):
        asked = find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        eventually(functools.partial(_is_found, admin, asked))
    _join(admin, kept)
    _join_anew(admin, kept)
    _begin_transaction(admin, kept)
    _open_session(admin, kept)
    _write_rules(admin, kept)
    return kept


def _make_topics(admin: BrokerConnection, kept: Secrets) -> None:
    names = (kept.topic, kept.other_topic)
    made = [
        create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in names
    ]
    answer: Any = admin.request(create_topics.CreateTopicsRequest(topics=made, timeout_ms=60_000))
    assert [topic.error_code for topic in answer.topics] == [0, 0], answer
    asked = [metadata.MetadataRequestTopic(name=name) for name in names]

    def led() -> dict[str, bytes]:
        found: Any = admin.request(metadata.MetadataRequest(topics=asked))
        ready = all(not t.error_code and t.partitions for t in found.topics)
        return {t.name: t.topic_id for t in found.topics} if ready else {}

    kept.ids = eventually(led)
    data = produce.PartitionProduceData(index=0, records=batch([kept.topic.encode()]))
    topic_data = [produce.TopicProduceData(name=kept.topic, partition_data=[data])]
    sent: Any = admin.request(
        produce.ProduceRequest(acks=1, timeout_ms=60_000, topic_data=topic_data), 9
    )
    assert sent.responses[0].partition_responses[0].error_code == 0, sent


def _is_found(admin: BrokerConnection, asked: Any) -> bool:
    answer: Any = admin.request(asked, 4)
    return all(not one.error_code for one in answer.coordinators)


def _join(admin: BrokerConnection, kept: Secrets) -> None:
    """A member of the classic protocol, and an offset."""
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=kept.topic.encode())

    def join() -> Any:
        asked = join_group.JoinGroupRequest(
            group_id=kept.group,
            session_timeout_ms=300_000,
            rebalance_timeout_ms=300_000,
            member_id=kept.member,
            protocol_type="consumer",
            protocols=[protocol],
        )
        answer: Any = admin.request(asked, 5)
        kept.member = answer.member_id
        return answer if not answer.error_code else None

    joined = eventually(join)
    assignment = sync_group.SyncGroupRequestAssignment(
        member_id=kept.member, assignment=kept.topic.encode()
    )
    synced: Any = admin.request(
        sync_group.SyncGroupRequest(
            group_id=kept.group,
            generation_id=joined.generation_id,
            member_id=kept.member,
            assignments=[assignment],
        ),
        3,
    )
    assert synced.error_code == 0, synced
    partition = offset_commit.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    committed: Any = admin.request(
        offset_commit.OffsetCommitRequest(
            group_id=kept.group,
            generation_id_or_member_epoch=joined.generation_id,
            member_id=kept.member,
            topics=[
                offset_commit.OffsetCommitRequestTopic(name=kept.topic, partitions=[partition])
            ],
        ),
        8,
    )
    assert committed.topics[0].partitions[0].error_code == 0, committed


def _join_anew(admin: BrokerConnection, kept: Secrets) -> None:
    asked = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=kept.new_group,
        member_id=secrets.token_hex(8),
        member_epoch=0,
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=[kept.topic],
        topic_partitions=[],
    )
    eventually(lambda: not admin.request(asked).error_code)  # type: ignore[attr-defined]


def _begin_transaction(admin: BrokerConnection, kept: Secrets) -> None:
    asked = init_producer_id.InitProducerIdRequest(
        transactional_id=kept.transaction, transaction_timeout_ms=600_000
    )

    def begin() -> Any:
        answer: Any = admin.request(asked, 4)
        return answer if not answer.error_code else None

    begun = eventually(begin)
    kept.producer_id = begun.producer_id
    who = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
    added: Any = admin.request(
        add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=kept.transaction,
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(name=kept.topic, partitions=[0])
            ],
            **{f"v3_and_below_{name}": value for name, value in who.items()},
        ),
        3,
    )
    results = added.results_by_topic_v3_and_below[0].results_by_partition
    assert [one.partition_error_code for one in results] == [0], added
    asked_too = add_offsets_to_txn.AddOffsetsToTxnRequest(
        transactional_id=kept.transaction, group_id=kept.group, **who
    )
    assert admin.request(asked_too, 3).error_code == 0  # type: ignore[attr-defined]


def _open_session(admin: BrokerConnection, kept: Secrets) -> None:
    """A fetch session, whose answers name topics that its requests need not name."""
    partition = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    asked = fetch.FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
        topics=[fetch.FetchTopic(topic=kept.topic, partitions=[partition])],
        session_epoch=0,
    )
    answer: Any = admin.request(asked, 12)
    kept.session_id = answer.session_id
    assert kept.session_id, answer


def _write_rules(admin: BrokerConnection, kept: Secrets) -> None:
    """ACLs, quotas, settings and credentials of people and groups that the stranger is not."""
    rule = create_acls.AclCreation(
        resource_type=2,
        resource_name=kept.other_topic,
        resource_pattern_type=3,
        principal=f"User:{kept.user}",
        host="*",
        operation=3,
        permission_type=3,
    )
    ruled: Any = admin.request(create_acls.CreateAclsRequest(creations=[rule]))
    assert ruled.results[0].error_code == 0, ruled
    entity = {"user": kept.user, "client-id": kept.client}
    quota = alter_client_quotas.EntryDataRequest(
        entity=[
            alter_client_quotas.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ],
        ops=[alter_client_quotas.OpData(key="producer_byte_rate", value=1e9)],
    )
    limited: Any = admin.request(
        alter_client_quotas.AlterClientQuotasRequest(entries=[quota], validate_only=False)
    )
    assert limited.entries[0].error_code == 0, limited
    setting = incremental_alter_configs.AlterableConfig(
        name="consumer.session.timeout.ms", config_operation=0, value="50000"
    )
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=32, resource_name=kept.new_group, configs=[setting]
    )
    set_: Any = admin.request(
        incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
    )
    assert set_.responses[0].error_code == 0, set_
    credential = alter_user_scram_credentials.ScramCredentialUpsertion(
        name=kept.user, mechanism=1, iterations=4096, salt=b"salt", salted_password=b"p" * 32
    )
    asked = alter_user_scram_credentials.AlterUserScramCredentialsRequest(
        deletions=[], upsertions=[credential]
    )
    assert admin.request(asked).results[0].error_code == 0  # type: ignore[attr-defined]


# Every request


@dataclass(frozen=True, slots=True, kw_only=True)
class StrangeRequest:
    """One request of a stranger, as it goes over the wire."""

    api_key: ApiKey
    version: int
    knows: tuple[str, ...]
    frame: bytes

    def __str__(self) -> str:
        return f"{self.api_key.name} v{self.version} knowing {self.knows}: {self.frame.hex()}"


SHAPES: Final = ("full", "null lists", "null texts", "nulls", "empty lists")
SMALL: Final = (0, 1, 2, 3, 4, 8, 16, 32, -1)  # Kinds of keys, resources, patterns, operations.
_EXACT: Final[Mapping[str, int]] = {
    "acks": -1,
    "config_operation": 0,
    "fetch_offset": 0,
    "max_bytes": 1_000_000,
    "max_wait_ms": 0,
    "partition_max_bytes": 1_000_000,
    "rebalance_timeout_ms": 10_000,
    "response_partition_limit": 1000,
    "session_epoch": 1,
    "session_timeout_ms": 10_000,
    "timeout_ms": 1_000,
    "timestamp": -2,
    "transaction_timeout_ms": 10_000,
}


def strange_requests(kept: Secrets) -> Iterator[StrangeRequest]:
    """Every API in every version, each filled in as many ways as differ."""
    for key in (*HANDLERS, *REFUSED):
        for version in versions_of(key):
            yield from requests_of(key, version, kept)


def requests_of(key: ApiKey, version: int, kept: Secrets) -> Iterator[StrangeRequest]:
    seen: set[bytes] = set()
    subsets = [one for size in range(len(KNOWABLE) + 1) for one in combinations(KNOWABLE, size)]
    for knows in subsets:
        for shape in SHAPES:
            for turn in range(len(SMALL)):
                filler = Filler(kept, knows=knows, shape=shape, turn=turn)
                body = filler.message(request_class(key), version).encode(version)
                if body in seen:
                    continue
                seen.add(body)
                frame = framed(key, version, body)
                yield StrangeRequest(api_key=key, version=version, knows=knows, frame=frame)
                if not filler.has_kinds:  # The others would come out the same.
                    break


def framed(key: int, version: int, body: bytes) -> bytes:
    payload = encode_request_header(key, version, CORRELATION_ID, "stranger") + body
    return struct.pack(">i", len(payload)) + payload


class Filler:
    """Fills in a request by the names of its fields."""

    def __init__(self, kept: Secrets, *, knows: Sequence[str], shape: str, turn: int) -> None:
        self._kept = kept
        self._knows = knows
        self._shape = shape
        self._turn = turn
        self.has_kinds = False  # Whether another turn makes another request.

    def message(self, kind: type[Any], version: int) -> Any:
        return kind(
            **{
                name: self._value(name, one, kind, version)
                for name, one in kind.fields.items()
                if one.exists_in(version)
            }
        )

    def _value(self, name: str, one: Field, kind: type[Struct], version: int) -> Any:
        is_list = one.kind in ("array", "struct")
        if one.nullable_in(version):
            if self._shape == "nulls":
                return None
            if self._shape == ("null lists" if is_list else "null texts"):
                return None
        if one.kind == "array":
            return self._list(name, one.of, kind, version)
        if one.kind == "struct":
            assert isinstance(one.of, type)
            return self.message(one.of, version)
        return self._scalar(name, one.kind, kind)

    def _list(self, name: str, of: Any, kind: type[Struct], version: int) -> list[Any]:
        if self._shape == "empty lists":
            return []
        if isinstance(of, type):
            return [self.message(of, version)]
        if of.__name__ == "string":
            return [self._text(name, kind)]
        return [self._scalar(name, of.__name__, kind)]

    def _scalar(self, name: str, scalar: str, kind: type[Struct]) -> Any:
        match scalar:
            case "string":
                return self._text(name, kind)
            case "uuid":
                return self._kept.topic_id if "id" in self._knows else bytes(16)
            case "boolean":
                return name.startswith("include") or self._choose((True, False))
            case "record_set":
                attributes = self._choose((0, TRANSACTIONAL))
                who = (self._kept.producer_id, 0)
                return batch([b"strange"], producer=who, sequence=0, attributes=attributes)
            case "blob":
                return b""
            case "float64":
                return 1.0
        return self._number(name, scalar)

    def _number(self, name: str, scalar: str) -> int:
        if name == "session_id":
            return self._kept.session_id if "topic" not in self._knows else 0
        if name.endswith("producer_id"):
            return self._kept.producer_id
        if name in _EXACT:
            return _EXACT[name]
        if name == "replica_id":
            return int(self._choose((-1, 1)))
        if scalar == "int8" and name not in ("isolation_level", "acknowledge_types"):
            return int(self._choose(SMALL))
        return 0

    def _choose(self, among: Sequence[Any]) -> Any:
        self.has_kinds = True
        return among[self._turn % len(among)]

    def _text(self, name: str, kind: type[Struct]) -> str:
        about = _subject(name, kind.__name__)
        if about == "member":
            return self._kept.member if "group" in self._knows else "somebody"
        if about == "any":  # It stands for whatever the stranger knows.
            known = [one for one in ("topic", "group", "transaction") if one in self._knows]
            about = known[-1] if known else ""
        if about in self._knows:
            return str(getattr(self._kept, about))
        return "mine"


def _subject(name: str, struct_name: str) -> str:
    """Whose name a text is; "any" where another field says so."""
    if "transactional" in name:
        return "transaction"
    if "member_id" in name:
        return "member"
    if "group" in name and "instance" not in name:
        return "group"
    if name in ("key", "coordinator_keys") or name.startswith("resource_name"):
        return "any"
    if "topic" in name or (name == "name" and "Config" not in struct_name):
        return "topic"
    return ""
