"""Somebody without a single right learns no name: every API in every version, bytes searched.

A secret may be in an answer only where the request named it. Whether a thing of some name exists
is not told either: the answer is the same for a name that nobody has.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.integration.security.acl_script import PASSWORD, PLAIN_MODULE, as_user, rule_of
from tests.integration.security.strangers import (
    KNOWABLE,
    Secrets,
    StrangeRequest,
    framed,
    keep_secrets,
    strange_requests,
)
from tests.support.broker import BrokerProcess
from tests.support.processes import HOST, free_port
from tests.support.waiting import eventually
from tests.support.wire import RawConnection, WireError

from penstock.client.wire.connection import BrokerConnection
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from penstock.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from penstock.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest
from penstock.security.acls.rules import (
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ANONYMOUS, NAMED = "PLAINTEXT", "SASL_PLAINTEXT"
BEFORE_LOGIN = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}


class World:
    def __init__(self, broker: BrokerProcess, ports: dict[str, int], kept: Secrets) -> None:
        self.broker = broker
        self.ports = ports
        self.kept = kept
        self.requests = list(strange_requests(kept))

    def admin(self) -> BrokerConnection:
        return as_user(self.ports[NAMED], "admin", "admin-secret")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory: Path = tmp_path_factory.mktemp("strangers")
    ports = {name: free_port() for name in (ANONYMOUS, NAMED)}
    settings = {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "inter.broker.listener.name": ANONYMOUS,  # What brokers send is tried there, too.
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{PLAIN_MODULE} required user_alice="{PASSWORD}" user_admin="admin-secret" '
            'user_carol="carol-secret";'
        ),
        "connection.failed.authentication.delay.ms": "0",
        "group.initial.rebalance.delay.ms": "0",
        "group.max.session.timeout.ms": "1800000",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "auto.create.topics.enable": "true",
        "log.retention.ms": "-1",
    }
    with BrokerProcess(directory, settings, port=ports[ANONYMOUS]) as broker:
        broker.start()
        with as_user(ports[NAMED], "admin", "admin-secret") as admin:
            yield World(broker, ports, keep_secrets(admin))
            assert broker.tracebacks() == {}, "\n".join(broker.tracebacks().values())
        broker.stop()


class Stranger:
    """Sends frames, and comes again whenever the door is shut in its face."""

    def __init__(self, world: World, listener: str) -> None:
        self._world = world
        self._listener = listener
        self._connection: BrokerConnection | None = None

    def answer_to(self, frame: bytes) -> bytes:
        """Empty: the connection was closed without a byte."""
        if self._connection is None or not self._connection.is_open:
            self._connection = self._connect()
        raw = self._connection._socket
        found = b""
        try:
            raw.sendall(frame)
            found = _read(raw, 4)
            found = _read(raw, struct.unpack(">i", found)[0])
        except (OSError, WireError):
            self._connection.close()
        return found

    def _connect(self) -> BrokerConnection:
        port = self._world.ports[self._listener]
        if self._listener == NAMED:
            return as_user(port)
        return BrokerConnection(HOST, port, timeout_s=120)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def _read(raw: object, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = raw.recv(size - len(found))  # type: ignore[attr-defined]
        if not piece:
            raise WireError(f"closed after {len(found)} of {size} bytes")
        found += piece
    return bytes(found)


@pytest.fixture(params=[NAMED, ANONYMOUS])
def stranger(world: World, request: pytest.FixtureRequest) -> Iterator[Stranger]:
    made = Stranger(world, request.param)
    yield made
    made.close()


def leaked(kept: Secrets, request: StrangeRequest, answer: bytes) -> list[str]:
    return [
        name
        for name, secret in kept.searched.items()
        if secret in answer and secret not in request.frame
    ]


def test_no_answer_has_a_name_that_the_stranger_did_not_know(
    world: World, stranger: Stranger
) -> None:
    found: dict[str, list[str]] = {}
    answered = set()
    for request in world.requests:
        answer = stranger.answer_to(request.frame)
        if answer:
            answered.add((request.api_key, request.version))
        if leaks := leaked(world.kept, request, answer):
            found[str(request)] = leaks
    assert found == {}
    # It was worth searching: nearly all were answered, and all is there as before.
    assert len(answered) > 0.9 * len({(one.api_key, one.version) for one in world.requests})
    with world.admin() as admin:
        listed = admin.ask(MetadataRequest(topics=None), MetadataResponse)
    assert set(world.kept.ids) <= {topic.name for topic in listed.topics}


def test_what_exists_is_refused_like_what_does_not(world: World, stranger: Stranger) -> None:
    absent = world.kept.with_absent_names()
    found = []
    for there, gone in zip(world.requests, strange_requests(absent), strict=True):
        # Ids are told apart from unknown ones by Kafka as well: nobody guesses them.
        if "id" in there.knows or not there.knows:
            continue
        answer = stranger.answer_to(there.frame)
        for name in KNOWABLE:
            if name != "id":
                answer = answer.replace(
                    getattr(world.kept, name).encode(), getattr(absent, name).encode()
                )
        if answer != stranger.answer_to(gone.frame):
            found.append(str(there))
    assert found == []


def test_nothing_is_answered_before_somebody_is_known(world: World) -> None:
    latest = {(one.api_key, one.version): one for one in world.requests}
    for request in latest.values():
        with RawConnection(world.ports[NAMED], timeout_s=120) as raw:
            raw.send(request.frame)
            answer = b""
            with suppress(WireError, OSError):
                answer = raw.read_frame()
        assert not answer or request.api_key in BEFORE_LOGIN, str(request)
        assert not leaked(world.kept, request, answer), str(request)


def test_nothing_is_answered_after_a_wrong_password(world: World) -> None:
    handshake = SaslHandshakeRequest(mechanism="PLAIN").encode(1)
    proof = SaslAuthenticateRequest(auth_bytes=f"\0{world.kept.user}\0wrong".encode()).encode(1)
    asked = MetadataRequest(topics=None).encode(8)
    with RawConnection(world.ports[NAMED], timeout_s=120) as raw:
        raw.send(framed(ApiKey.SASL_HANDSHAKE, 1, handshake))
        raw.read_frame()
        raw.send(framed(ApiKey.SASL_AUTHENTICATE, 1, proof) + framed(ApiKey.METADATA, 8, asked))
        assert b"Invalid username or password" in raw.read_frame()
        with pytest.raises((WireError, OSError)):
            raw.read_frame()


def test_a_pattern_matches_only_what_its_member_may_describe(world: World) -> None:
    """Carol has a group of her own, and one topic."""
    rules = [
        rule_of((kind, name, operation, PatternType.LITERAL, AclPermission.ALLOW, "User:carol"))
        for kind, name, operation in (
            (AclResourceType.GROUP, "carols", AclOperation.READ),
            (AclResourceType.TOPIC, "carols", AclOperation.DESCRIBE),
        )
    ]
    with world.admin() as admin:
        made = CreatableTopic(name="carols", num_partitions=1, replication_factor=1)
        admin.request(CreateTopicsRequest(topics=[made], timeout_ms=60_000))
        answer = admin.ask(CreateAclsRequest(creations=rules), CreateAclsResponse)
        assert [one.error_code for one in answer.results] == [0, 0]
    asked = ConsumerGroupHeartbeatRequest(
        group_id="carols",
        member_id="carols-member",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex=".*",
        topic_partitions=[],
    )
    with as_user(world.ports[NAMED], "carol", "carol-secret") as carol:
        known = carol.ask(
            MetadataRequest(topics=[MetadataRequestTopic(name="carols")]), MetadataResponse
        )
        told = eventually(lambda: _assignment(carol, asked))
    assert told == {known.topics[0].topic_id}


def _assignment(carol: BrokerConnection, asked: ConsumerGroupHeartbeatRequest) -> set[bytes]:
    answer = carol.ask(asked, ConsumerGroupHeartbeatResponse)
    assert answer.error_code == 0, answer
    if answer.assignment is None:
        return set()
    return {one.topic_id for one in answer.assignment.topic_partitions}
