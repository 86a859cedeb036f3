"""Every API has a guard, and the guards refuse what the table of rights says they need."""

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.broker.conftest import Served

from penstock.broker.context import RequestContext
from penstock.broker.dispatch import HANDLERS, PEER_HANDLERS, REFUSED
from penstock.broker.security.guard_parts import refusal
from penstock.broker.security.guards import FIRST_LOOKS, GUARDS, guarded
from penstock.errors import ErrorCode, TransactionalIdAuthorization
from penstock.net.session import Session
from penstock.protocol.apis import ApiKey
from penstock.protocol.headers import RequestHeader
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import Record, build_batch
from penstock.security.acls.audit import LOGGER_NAME
from penstock.security.acls.required import REQUIRED
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclOperation,
    AclPermission,
    AclResourceType,
    ResourcePattern,
)


def test_no_api_is_served_without_a_guard() -> None:
    assert set(GUARDS) == {*HANDLERS, *PEER_HANDLERS, *REFUSED}


def test_whoever_has_a_guard_has_a_line_in_the_table_of_rights() -> None:
    assert set(GUARDS) <= set(REQUIRED)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (AclResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (AclResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (
            AclResourceType.TRANSACTIONAL_ID,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
    ],
)
def test_a_refusal_has_the_code_of_its_resource(kind: AclResourceType, code: ErrorCode) -> None:
    assert refusal(kind).code is code


OPEN = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
# Not a rule but the token itself says who may: its owner and its renewers.
OPEN |= {ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN}


def test_only_what_everybody_may_ask_needs_no_right() -> None:
    served = {*HANDLERS, *PEER_HANDLERS}
    free = {key for key in served if not any(line.checks for line in REQUIRED[key])}
    assert free == OPEN


# Produce, which is looked at first and guarded only where that is not enough


class Door:
    """Produce of a broker on which alice may write to `hers`."""

    def __init__(self, served: Served) -> None:
        self.broker = served.broker
        entry = AccessControlEntry("User:alice", "*", AclOperation.WRITE, AclPermission.ALLOW)
        rules = {ResourcePattern(AclResourceType.TOPIC, "hers"): frozenset({entry})}
        access = self.broker.access
        assert access is not None
        access.take_image(replace(self.broker.image, acls=rules))
        self.handled: list[list[str]] = []
        self.refused: list[list[str]] = []
        self._handle = guarded(ApiKey.PRODUCE, "Produce", self.handle, self.refuse)

    def handle(self, request: ProduceRequest, _context: RequestContext) -> None:
        self.handled.append([topic.name for topic in request.topic_data])

    def refuse(self, request: ProduceRequest, _error: Exception) -> None:
        self.refused.append([topic.name for topic in request.topic_data])

    def produce(self, *topics: str, records: bytes | None = None) -> None:
        data = [PartitionProduceData(index=0, records=records)]
        named = [TopicProduceData(name=name, partition_data=data) for name in topics]
        header = RequestHeader(
            api_key=ApiKey.PRODUCE, api_version=9, correlation_id=1, client_id="c"
        )
        session = Session(listener="L", address="10.0.0.1:5", principal="User:alice")
        self._handle(
            ProduceRequest(acks=1, timeout_ms=1, topic_data=named),
            RequestContext(self.broker, header, session),
        )


@pytest.fixture
def door(serve: Callable[..., Served]) -> Door:
    name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    return Door(serve({"authorizer.class.name": name}))


def test_what_is_allowed_passes_and_what_is_not_is_noted_once(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=LOGGER_NAME)
    door.produce("hers", "hers")
    assert (door.handled, door.refused, caplog.messages) == ([["hers", "hers"]], [], [])
    door.produce("his")
    assert (len(door.handled), door.refused) == (1, [["his"]])
    (line,) = caplog.messages
    assert "is Denied" in line and "Topic:LITERAL:his" in line


def test_who_wants_to_hear_of_what_is_allowed_hears_of_it(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger=LOGGER_NAME)
    door.produce("hers")
    (line,) = caplog.messages
    assert "is Allowed" in line and "Topic:LITERAL:hers" in line


def test_a_transactional_batch_needs_a_right_of_its_own(door: Door) -> None:
    record = Record(offset=0, timestamp=0, key=None, value=b"v", headers=())
    batch = build_batch([record], producer_id=1, producer_epoch=0, is_transactional=True)
    with pytest.raises(TransactionalIdAuthorization):
        door.produce("hers", records=bytes(batch))
    assert door.handled == []


def test_a_first_look_stands_before_a_guard_and_never_for_one() -> None:
    assert set(FIRST_LOOKS) <= set(GUARDS)
