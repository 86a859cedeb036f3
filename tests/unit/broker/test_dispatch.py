"""From a frame to its answer: errors become codes once, and what brokers send has one listener."""

import asyncio
import logging
import re
from collections.abc import Coroutine
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import penstock.broker
from penstock.broker.between_brokers import SENT_BY_BROKERS
from penstock.broker.dispatch import (
    HANDLERS,
    PEER_HANDLERS,
    REFUSED,
    Dispatcher,
    Route,
    served_versions,
    versions_of,
)
from penstock.config.broker import BrokerConfig
from penstock.errors import CoordinatorNotAvailable, ErrorCode
from penstock.net.connection import CloseConnection
from penstock.net.session import Session
from penstock.protocol.apis import ApiKey, Request, response_class
from penstock.protocol.headers import decode_response_header, encode_request_header
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from penstock.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.image_fetch import ImageFetchRequest
from penstock.security.acls.required import RequiredRight
from penstock.telemetry.metrics import Metrics

TWO_LISTENERS = {
    "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
}
ONE_LISTENER = {"listeners": "ANY://127.0.0.1:0", "listener.security.protocol.map": "ANY:PLAINTEXT"}


def dispatcher(listener: str, settings: dict[str, str]) -> Dispatcher:
    """Of a broker of which no handler is ever reached."""
    broker: Any = SimpleNamespace(
        config=BrokerConfig({"broker.id": "1", "log.dirs": "/nowhere", **settings}),
        quotas=SimpleNamespace(is_active=False),
        metrics=Metrics(),
        peers=object(),
        access=None,
    )
    return Dispatcher(broker, listener=listener)


# Rights


EVERY_VERSION = [
    (key, version)
    for key in sorted({*HANDLERS, *PEER_HANDLERS, *REFUSED})
    for version in versions_of(key)
]


FOR_EVERYBODY = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.RENEW_DELEGATION_TOKEN,  # Its owner and its renewers may, whatever the rules say.
    ApiKey.EXPIRE_DELEGATION_TOKEN,
}


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_every_route_says_which_right_it_needs(key: ApiKey, version: int) -> None:
    route = dispatcher("INSIDE", TWO_LISTENERS)._find_route(key, version)
    assert route is not None
    assert isinstance(route.needs, tuple)
    assert all(isinstance(check, RequiredRight) for check in route.needs)
    assert route.needs or key in FOR_EVERYBODY


# Requests of brokers


def follower_fetch(version: int) -> FetchRequest:
    partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)]
    topics = [FetchTopic(topic="t", topic_id=bytes(15) + b"t", partitions=partitions)]
    if version >= 15:
        return FetchRequest(replica_state=ReplicaState(replica_id=2), topics=topics)
    return FetchRequest(replica_id=2, topics=topics)


def ask(served: Dispatcher, request: Request, version: int) -> Any:
    session = Session(listener="any", address="127.0.0.1:5")
    return asyncio.run(served.handle(request, version, session=session))


@pytest.mark.parametrize("version", [4, 11, 17])
def test_a_follower_on_the_clients_listener_is_refused_by_each_partition(version: int) -> None:
    answer = ask(dispatcher("OUTSIDE", TWO_LISTENERS), follower_fetch(version), version)
    assert answer.error_code == ErrorCode.NONE
    (topic,) = answer.responses
    assert [p.error_code for p in topic.partitions] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def test_an_operator_may_send_markers_on_any_listener() -> None:
    served = dispatcher("OUTSIDE", TWO_LISTENERS)._find_route(ApiKey.WRITE_TXN_MARKERS, 1)
    assert served is not None
    assert served.handle.__module__ == "penstock.broker.handlers.write_txn_markers"


def test_transactions_in_a_batch_are_refused_as_a_whole_on_the_clients_listener() -> None:
    batch = [AddPartitionsToTxnTransaction(transactional_id="a", producer_id=1)]
    request = AddPartitionsToTxnRequest(transactions=batch)
    answer = ask(dispatcher("OUTSIDE", TWO_LISTENERS), request, 4)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize("key", sorted(PEER_HANDLERS))
def test_what_is_for_brokers_alone_closes_the_connection_of_a_client(key: ApiKey) -> None:
    with pytest.raises(CloseConnection, match="is not served"):
        dispatcher("OUTSIDE", TWO_LISTENERS)._find_route(key, 0)


@pytest.mark.parametrize(
    ("listener", "settings"), [("INSIDE", TWO_LISTENERS), ("ANY", ONE_LISTENER)]
)
@pytest.mark.parametrize("key", sorted(SENT_BY_BROKERS))
def test_brokers_are_served_on_their_listener_and_on_the_only_one(
    listener: str, settings: dict[str, str], key: ApiKey
) -> None:
    version = versions_of(key)[-1]
    served = dispatcher(listener, settings)._find_route(key, version)
    assert served is not None
    assert served.handle.__module__ == f"penstock.broker.handlers.{key.name.lower()}"


@pytest.mark.parametrize(("replica_id", "is_brokers"), [(-1, False), (-2, False), (0, True)])
def test_consumers_and_tools_that_verify_replicas_are_no_followers(
    replica_id: int, is_brokers: bool
) -> None:
    request = FetchRequest(replica_id=replica_id)
    assert SENT_BY_BROKERS[ApiKey.FETCH](request, 4) is is_brokers


@pytest.mark.parametrize("version", [0, 3])
def test_a_client_may_add_partitions_to_its_own_transaction(version: int) -> None:
    assert not SENT_BY_BROKERS[ApiKey.ADD_PARTITIONS_TO_TXN](AddPartitionsToTxnRequest(), version)


def test_what_brokers_send_is_announced_nowhere_or_known_by_its_form() -> None:
    announced = set(SENT_BY_BROKERS) & set(served_versions())
    assert announced == {ApiKey.FETCH, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.WRITE_TXN_MARKERS}


# Errors


class Peer:
    """A connection that nobody looks at."""

    session = Session(listener="ANY", address="127.0.0.1:5")


def raising(error: Exception, *, is_later: bool) -> Any:
    """A handler's module whose handler raises at once, or when it is awaited."""

    def handle(_request: Any, _context: Any) -> Any:
        async def later() -> HeartbeatResponse:
            raise error

        if is_later:
            return later()
        raise error

    module = ModuleType("raising")
    module.handle = handle  # type: ignore[attr-defined]
    return module


def served_by(module: Any) -> tuple[Dispatcher, Route]:
    made = dispatcher("ANY", ONE_LISTENER)
    route = Route(ApiKey.HEARTBEAT, 3, module, made._broker.metrics.request("Heartbeat"))
    made._routes[ApiKey.HEARTBEAT, 3] = route
    return made, route


def answer_by_frame(made: Dispatcher) -> HeartbeatResponse:
    body = HeartbeatRequest(group_id="g", generation_id=1, member_id="m").encode(3)
    frame = encode_request_header(ApiKey.HEARTBEAT, 3, 7, "c") + body
    parts: Any = made(Peer(), memoryview(bytearray(frame)))  # type: ignore[arg-type]
    if isinstance(parts, Coroutine):
        parts = asyncio.run(parts)
    data = b"".join(parts)[4:]
    number, at = decode_response_header(data, ApiKey.HEARTBEAT, 3)
    assert number == 7
    answer = response_class(ApiKey.HEARTBEAT).decode(data[at:], 3)
    assert isinstance(answer, HeartbeatResponse)
    return answer


def answer_by_value(made: Dispatcher) -> HeartbeatResponse:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    answer = asyncio.run(made.handle(request, 3))
    assert isinstance(answer, HeartbeatResponse)
    return answer


WAYS = pytest.mark.parametrize("answer", [answer_by_frame, answer_by_value])
TIMES = pytest.mark.parametrize("is_later", [False, True])


@WAYS
@TIMES
def test_an_error_with_a_code_is_answered_with_it(answer: Any, is_later: bool) -> None:
    made, route = served_by(raising(CoordinatorNotAvailable("soon"), is_later=is_later))
    assert answer(made).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert route.metrics.errors == {"COORDINATOR_NOT_AVAILABLE": 1}


@WAYS
@TIMES
def test_an_error_of_ours_is_told_as_a_code_and_logged_with_its_traceback(
    answer: Any, is_later: bool, caplog: pytest.LogCaptureFixture
) -> None:
    made, route = served_by(raising(ZeroDivisionError("oops"), is_later=is_later))
    with caplog.at_level(logging.ERROR):
        assert answer(made).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert route.metrics.errors == {"UNKNOWN_SERVER_ERROR": 1}
    (record,) = caplog.records
    assert record.getMessage() == "Heartbeat version 3 failed unexpectedly"
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


@WAYS
@TIMES
def test_whoever_cannot_be_answered_is_closed(answer: Any, is_later: bool) -> None:
    made, route = served_by(raising(CloseConnection("no"), is_later=is_later))
    with pytest.raises(CloseConnection, match="no"):
        answer(made)
    assert route.metrics.errors == {}


def test_a_response_without_a_place_for_errors_closes_the_connection() -> None:
    module = raising(CoordinatorNotAvailable("soon"), is_later=False)
    metrics = Metrics().request("ImageFetch")
    route = Route(ApiKey.CREATE_PARTITIONS, 0, module, metrics)
    with pytest.raises(CloseConnection, match="cannot say so"):
        route.answer_error(ImageFetchRequest(), CoordinatorNotAvailable("soon"))


def test_codes_are_written_in_one_place() -> None:
    rooms = Path(penstock.broker.__path__[0])
    by_hand = re.compile(r"int\([^()]*error\.code|error_code\s*=\s*error\.code")
    found = {
        str(path.relative_to(rooms))
        for path in rooms.rglob("*.py")
        if by_hand.search(path.read_text())
    }
    assert found == {"error_answers.py"}
