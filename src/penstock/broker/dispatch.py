"""From a frame to its handler and back: the one place that knows which APIs are served.

`HANDLERS` is the truth about what this broker can do: ApiVersions answers from it, and
docs/support.md is made from it. `PEER_HANDLERS` is what brokers ask of each other, on their own
listener alone. Each route knows which right it needs; a broker with an authorizer has a guard
before each (broker/security/guards.py). What a handler raises becomes an answer here and nowhere
else. Topics, logs and records are the handlers' business.
"""

import importlib
import logging
import struct
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from types import CoroutineType, ModuleType
from typing import Any, cast

from penstock.broker.between_brokers import SENT_BY_BROKERS, SENT_BY_OPERATORS
from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.quotas.bill import Bill, bill_for
from penstock.broker.slices import LISTS, in_slices
from penstock.broker.waiting import Unanswered
from penstock.errors import ErrorCode, ProtocolError, UnknownServerError, error_for
from penstock.net.connection import Answer, CloseConnection, IncomingConnection
from penstock.net.places import AnswerPlace
from penstock.net.session import Session
from penstock.net.transport import Parts
from penstock.protocol.apis import (
    ApiKey,
    Request,
    Response,
    request_class,
    response_class,
    supported_versions,
)
from penstock.protocol.headers import (
    RequestHeader,
    decode_request_header,
    encode_response_header,
)
from penstock.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from penstock.protocol.primitives import MalformedMessage
from penstock.protocol.schema import UNREADABLE
from penstock.security.acls.required import RequiredRight, required
from penstock.security.acls.rules import AclOperation
from penstock.telemetry.metrics import Metrics, RequestMetrics

log = logging.getLogger("kafka.server.KafkaApis")

# API → module in broker/handlers, of the same name as in protocol/messages.
HANDLERS: dict[ApiKey, str] = {
    ApiKey.PRODUCE: "produce",
    ApiKey.FETCH: "fetch",
    ApiKey.LIST_OFFSETS: "list_offsets",
    ApiKey.METADATA: "metadata",
    ApiKey.OFFSET_COMMIT: "offset_commit",
    ApiKey.OFFSET_FETCH: "offset_fetch",
    ApiKey.FIND_COORDINATOR: "find_coordinator",
    ApiKey.JOIN_GROUP: "join_group",
    ApiKey.HEARTBEAT: "heartbeat",
    ApiKey.LEAVE_GROUP: "leave_group",
    ApiKey.SYNC_GROUP: "sync_group",
    ApiKey.DESCRIBE_GROUPS: "describe_groups",
    ApiKey.LIST_GROUPS: "list_groups",
    ApiKey.SASL_HANDSHAKE: "sasl_handshake",
    ApiKey.API_VERSIONS: "api_versions",
    ApiKey.CREATE_TOPICS: "create_topics",
    ApiKey.DELETE_TOPICS: "delete_topics",
    ApiKey.DELETE_RECORDS: "delete_records",
    ApiKey.INIT_PRODUCER_ID: "init_producer_id",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "offset_for_leader_epoch",
    ApiKey.ADD_PARTITIONS_TO_TXN: "add_partitions_to_txn",
    ApiKey.ADD_OFFSETS_TO_TXN: "add_offsets_to_txn",
    ApiKey.END_TXN: "end_txn",
    ApiKey.WRITE_TXN_MARKERS: "write_txn_markers",
    ApiKey.TXN_OFFSET_COMMIT: "txn_offset_commit",
    ApiKey.DESCRIBE_ACLS: "describe_acls",
    ApiKey.CREATE_ACLS: "create_acls",
    ApiKey.DELETE_ACLS: "delete_acls",
    ApiKey.DESCRIBE_CONFIGS: "describe_configs",
    ApiKey.ALTER_CONFIGS: "alter_configs",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "alter_replica_log_dirs",
    ApiKey.DESCRIBE_LOG_DIRS: "describe_log_dirs",
    ApiKey.SASL_AUTHENTICATE: "sasl_authenticate",
    ApiKey.CREATE_DELEGATION_TOKEN: "create_delegation_token",
    ApiKey.RENEW_DELEGATION_TOKEN: "renew_delegation_token",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "expire_delegation_token",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "describe_delegation_token",
    ApiKey.DELETE_GROUPS: "delete_groups",
    ApiKey.CREATE_PARTITIONS: "create_partitions",
    ApiKey.ELECT_LEADERS: "elect_leaders",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "incremental_alter_configs",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "alter_partition_reassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "list_partition_reassignments",
    ApiKey.OFFSET_DELETE: "offset_delete",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: "describe_client_quotas",
    ApiKey.ALTER_CLIENT_QUOTAS: "alter_client_quotas",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "describe_user_scram_credentials",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "alter_user_scram_credentials",
    ApiKey.UPDATE_FEATURES: "update_features",
    ApiKey.DESCRIBE_CLUSTER: "describe_cluster",
    ApiKey.DESCRIBE_PRODUCERS: "describe_producers",
    ApiKey.DESCRIBE_TRANSACTIONS: "describe_transactions",
    ApiKey.LIST_TRANSACTIONS: "list_transactions",
    ApiKey.LIST_CONFIG_RESOURCES: "list_config_resources",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "describe_topic_partitions",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "consumer_group_heartbeat",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "consumer_group_describe",
}

# What brokers ask of each other; answered on the inter-broker listener and never advertised.
PEER_HANDLERS: dict[ApiKey, str] = {
    ApiKey.IMAGE_FETCH: "image_fetch",
    ApiKey.PARTITIONS_CHANGED: "partitions_changed",
    ApiKey.BROKER_SHUTDOWN: "broker_shutdown",
    ApiKey.FORWARD: "forward",
    ApiKey.REPLICA_ENDS: "replica_ends",
}

# Understood only to be refused, and never advertised: clients of groups that are not served.
REFUSED: dict[ApiKey, str] = dict.fromkeys(
    (
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    ),
    "unserved",
)

# What only the controller can do; other brokers pass it on (broker/membership/forwarding.py).
CONTROLLER_APIS = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ELECT_LEADERS,
    }
)

# Defined, but not yet final in Apache Kafka, which does not offer it either.
_UNSTABLE_FROM = {ApiKey.INIT_PRODUCER_ID: 6}

_KEY_AND_VERSION = struct.Struct(">hh")
_CORRELATION_ID = struct.Struct(">i")
_SIZE_AND_CORRELATION_ID = struct.Struct(">ii")
# A request beyond this is a list of thousands; to read it takes longer than others should wait.
# Produce is no such list, however long it is: its records are not looked at.
_LARGE_REQUEST_BYTES = 64 * 1024
_AWAITED = (CoroutineType, Unanswered)  # What handlers return that is no response yet.
_HEADER_BYTES_MIN = 8  # Key, version and correlation id, which every header of any time has.


class Route:
    """How one version of one API is decoded, handled and answered."""

    __slots__ = (
        "_write",
        "api_key",
        "decode",
        "error_response",
        "handle",
        "header_tail",
        "metrics",
        "needs",
        "read",
        "version",
    )

    def __init__(
        self,
        api_key: ApiKey,
        version: int,
        module: ModuleType,
        metrics: RequestMetrics,
        *,
        serves_brokers: bool = True,
        is_guarded: bool = False,
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.metrics = metrics
        self.needs: tuple[RequiredRight, ...] = required(api_key, version)
        # What the response header of this version has behind the correlation id.
        self.header_tail = encode_response_header(api_key, version, 0)[_CORRELATION_ID.size :]
        # Bytes after the request are not looked at, as in Apache Kafka: librdkafka leaves three
        # of them behind when it asks for the metadata of all topics.
        self.decode: Callable[..., tuple[Any, int]] = request_class(api_key).decode_prefix
        self.read = request_class(api_key).reader(version)
        self._write = response_class(api_key).part_writer(version)
        self.handle: Callable[[Any, RequestContext], Any] = module.handle
        if api_key in CONTROLLER_APIS:
            self.handle = partial(_handle_at_controller, module)
        elif api_key in LISTS:
            self.handle = in_slices(module.handle, LISTS[api_key])
        is_for_brokers = api_key in SENT_BY_BROKERS and api_key not in SENT_BY_OPERATORS
        if is_for_brokers and not serves_brokers:
            self.handle = partial(_refuse_brokers, self.needs, self.handle)
        self.error_response: Callable[[Any, ProtocolError], Any] = getattr(
            module, "error_response", None
        ) or partial(_answer_plainly, api_key)
        if is_guarded:
            from penstock.broker.security.guards import guarded  # Only where rules are to hold.

            self.handle = guarded(api_key, api_name(api_key), self.handle, self.error_response)

    def answer_error(self, request: Any, error: Exception) -> Any:
        """What a handler raised, as the answer to its request.

        Of an error of ours the client gets a code, and the log the traceback.
        """
        if isinstance(error, CloseConnection):
            raise error
        if not isinstance(error, ProtocolError):
            name = api_name(self.api_key)
            log.error("%s version %d failed unexpectedly", name, self.version, exc_info=error)
            error = UnknownServerError("see the broker's log")
        response = self.error_response(request, error)
        self.metrics.fail(error.code.name)
        return response

    def frame(self, correlation_id: int, response: Any) -> Parts:
        """Put size and header in front of a response: the parts as they go out."""
        try:
            parts: Parts = self._write(response)
        except Exception:  # noqa: BLE001 - it is raised anew, with the reason
            parts = response.encode_parts(self.version)
        if len(parts) == 1 and type(parts[0]) is bytes:  # All but the records of a Fetch.
            body, tail = parts[0], self.header_tail
            size = _CORRELATION_ID.size + len(tail) + len(body)
            return [_SIZE_AND_CORRELATION_ID.pack(size, correlation_id) + tail + body]
        size = _CORRELATION_ID.size + len(self.header_tail)
        for part in parts:
            size += len(part)
        lead = _SIZE_AND_CORRELATION_ID.pack(size, correlation_id) + self.header_tail
        if isinstance(parts[0], bytes):
            parts[0] = lead + parts[0]
        else:
            parts.insert(0, lead)
        return parts


def _refuse_brokers(
    needs: tuple[RequiredRight, ...],
    handle: Callable[[Any, RequestContext], Any],
    request: Any,
    context: RequestContext,
) -> Any:
    """Handle what clients send; what only brokers send did not come in on their listener."""
    key, version = request.api_key, context.version
    if not SENT_BY_BROKERS[key](request, version):
        return handle(request, context)
    name = context.broker.config.inter_broker_listener_name
    raise error_for(
        _code_for_strangers(needs),
        f"{api_name(key)} of this kind is served to brokers on the listener {name} alone",
    )


def _code_for_strangers(needs: tuple[RequiredRight, ...]) -> ErrorCode:
    """The code for somebody who is no broker: without the right to act for the cluster."""
    for check in needs:
        found: RequiredRight | None = check
        while found is not None:
            if found.operation is AclOperation.CLUSTER_ACTION:
                return found.code
            found = found.instead
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _handle_at_controller(module: ModuleType, request: Any, context: RequestContext) -> Any:
    """Handle it here, if this broker is the controller, or pass it on to the one that is."""
    broker = context.broker
    if broker.forwarder is None:
        return module.handle(request, context)
    if broker.controller is not None:
        return _handle_patiently(module, request, context)
    pass_on = getattr(module, "pass_on", None)  # Where a part of it is this broker's own matter.
    if pass_on is not None:
        return pass_on(request, context, broker.forwarder)
    return broker.forwarder.forward(request, context)


async def _handle_patiently(module: ModuleType, request: Any, context: RequestContext) -> Any:
    """While ZooKeeper is away, a client's request waits for it as long as the client does."""
    from penstock.broker.membership.forwarding import timeout_s_of
    from penstock.meta.deadline import deadline_in

    with deadline_in(timeout_s_of(request)):
        response = module.handle(request, context)
        return await response if isinstance(response, _AWAITED) else response


def _answer_plainly(api_key: ApiKey, _request: Any, error: ProtocolError) -> Any:
    """For an API whose response says at its top what went wrong."""
    response = response_class(api_key)()
    if not hasattr(response, "error_code"):
        raise CloseConnection(f"{api_key.name} failed and cannot say so: {error}")
    return fail(response, error)


class _WaitingRequest:
    """A request on a connection that waits for its answer without a task."""

    __slots__ = (
        "_bill",
        "_context",
        "_place",
        "_request",
        "_route",
        "_started_s",
        "_unanswered",
    )

    _place: AnswerPlace

    def __init__(
        self,
        route: Route,
        request: Any,
        context: RequestContext,
        unanswered: Unanswered,
        started_s: float,
        bill: Bill | None,
    ) -> None:
        self._route = route
        self._request = request
        self._context = context
        self._unanswered = unanswered
        self._started_s = started_s
        self._bill = bill

    def begin(self, connection: IncomingConnection) -> None:
        self._place = connection.keep_place(self._unanswered)
        self._unanswered.start(self)

    def wake(self) -> None:
        """Answer, if there is enough by now."""
        looked_s = time.perf_counter()
        try:
            response = self._look()
            now_s = time.perf_counter()
            if self._bill is not None:
                self._bill.note_step(now_s - looked_s)
            if response is None:
                return
            self._unanswered.leave()
            self._route.metrics.observe(now_s - self._started_s)
            if self._bill is not None:
                self._bill.settle(response)
            parts = self._route.frame(self._context.header.correlation_id, response)
        except Exception as error:  # noqa: BLE001 - nobody else could tell the client
            self._unanswered.leave()
            self._place.fail(str(error))
            return
        self._place.fill(parts)

    def _look(self) -> Any:
        try:
            return self._unanswered.look()
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            return self._route.answer_error(self._request, error)


class Dispatcher:
    """Serves the frames of one listener."""

    def __init__(self, broker: Broker, *, listener: str) -> None:
        self._broker = broker
        self._quotas = broker.quotas
        self._own = Session(listener=listener, address="")  # For what the broker asks itself.
        # Where there is one listener it is the brokers' as well, whatever its name.
        config = broker.config
        self._serves_brokers = (
            listener == config.inter_broker_listener_name or len(config.listeners) == 1
        )
        self._routes: dict[tuple[int, int], Route] = {}  # By API key and version.

    def __call__(self, connection: IncomingConnection, frame: memoryview) -> Answer:
        started_s = time.perf_counter()
        if len(frame) < _HEADER_BYTES_MIN:
            raise CloseConnection(f"a request of {len(frame)} bytes has no header")
        wanted = _KEY_AND_VERSION.unpack_from(frame)
        route = self._routes.get(wanted) or self._find_route(*wanted)
        if route is None:
            return _answer_unknown_version(frame, self._broker.metrics)
        if len(frame) > _LARGE_REQUEST_BYTES and route.api_key is not ApiKey.PRODUCE:
            connection.hold()
            return self._serve_large(route, bytearray(frame), connection)
        try:
            header, body_at = decode_request_header(frame)
            request, _ = route.read(frame, body_at, len(frame))
        except UNREADABLE:
            _decode(route, frame)  # Raises it anew, with the reason.
            raise
        context = RequestContext(self._broker, header, connection.session)
        bill = None
        if self._quotas.is_active:
            bill = bill_for(route.api_key, request, context, connection, len(frame))
        try:
            response = route.handle(request, context)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            response = route.answer_error(request, error)
        if type(response) is CoroutineType:
            if context.holds:
                connection.hold()
            if bill is not None:
                bill.note_time(time.perf_counter() - started_s)
            return self._serve_later(route, request, context, response, started_s, bill)
        if isinstance(response, Unanswered):
            if bill is not None:
                bill.note_time(time.perf_counter() - started_s)
            waiting = _WaitingRequest(route, request, context, response, started_s, bill)
            waiting.begin(connection)
            return None
        took_s = time.perf_counter() - started_s
        route.metrics.observe(took_s)
        if bill is not None:
            bill.note_time(took_s)
            bill.settle(response)
        if response is None:
            return None
        return route.frame(header.correlation_id, response)

    async def _serve_large(
        self, route: Route, frame: bytearray, connection: IncomingConnection
    ) -> Parts | None:
        """A request that takes long to read: done elsewhere, and so is writing the answer."""
        started_s = time.perf_counter()
        header, request = await self._broker.slow_lane.run(partial(_decode, route, frame))
        context = RequestContext(self._broker, header, connection.session)
        context.is_large = True
        bill = None
        if self._quotas.is_active:
            bill = bill_for(route.api_key, request, context, connection, len(frame))
        response = _handle(route, request, context)
        return await self._serve_later(route, request, context, response, started_s, bill)

    async def _serve_later(
        self,
        route: Route,
        request: Any,
        context: RequestContext,
        response: Coroutine[Any, Any, Any],
        started_s: float,
        bill: Bill | None,
    ) -> Parts | None:
        try:
            answer = await (response if bill is None else bill.timed(response))
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            answer = route.answer_error(request, error)
        route.metrics.observe(time.perf_counter() - started_s)
        if bill is not None:
            bill.settle(answer)
        if answer is None:
            return None
        frame = partial(route.frame, context.header.correlation_id, answer)
        return await self._broker.slow_lane.run(frame) if context.is_large else frame()

    async def handle(
        self,
        request: Request,
        version: int,
        *,
        client_id: str | None = None,
        session: Session | None = None,
    ) -> Response | None:
        """The answer to a request that came without a socket; None: it wants none.

        For requests that were passed on, for brokers that live together in one process on a
        simulated network, and without a session for what this broker asks itself.
        """
        key = request.api_key
        route = self._routes.get((key, version)) or self._find_route(key, version)
        if route is None:
            raise CloseConnection(f"version {version} of {api_name(key)} is not served")
        header = RequestHeader(key, version, 0, client_id)
        context = RequestContext(self._broker, header, session or self._own)
        try:
            response = await _handle(route, request, context)
        except Exception as error:  # noqa: BLE001 - whatever it is, the asker gets an answer
            response = route.answer_error(request, error)
        if context.throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = context.throttle_ms
        return cast("Response | None", response)

    def _find_route(self, key: int, version: int) -> Route | None:
        """The route of a version served for the first time; None: an unknown ApiVersions."""
        try:
            api_key = ApiKey(key)
        except ValueError:
            raise CloseConnection(f"there is no API with the key {key}") from None
        is_ours = api_key in HANDLERS or api_key in REFUSED
        is_peers = self._serves_brokers and self._broker.peers is not None
        if not is_ours and not (is_peers and api_key in PEER_HANDLERS):
            raise CloseConnection(f"{api_name(api_key)} (API key {key}) is not served")
        served = versions_of(api_key)
        if version not in served:
            if api_key is ApiKey.API_VERSIONS:
                return None
            raise CloseConnection(
                f"version {version} of {api_name(api_key)} is not served, "
                f"{served[0]} to {served[-1]} are"
            )
        route = self._routes[key, version] = _make_route(
            api_key,
            version,
            self._broker.metrics,
            serves_brokers=self._serves_brokers,
            is_guarded=self._broker.access is not None,
        )
        return route


def api_name(api_key: ApiKey) -> str:
    """The name as Kafka's metrics spell it: Produce, ListOffsets."""
    return "".join(word.capitalize() for word in api_key.name.split("_"))


def _make_route(
    api_key: ApiKey,
    version: int,
    metrics: Metrics,
    *,
    serves_brokers: bool = True,
    is_guarded: bool = False,
) -> Route:
    name = HANDLERS.get(api_key) or REFUSED.get(api_key) or PEER_HANDLERS[api_key]
    module = importlib.import_module(f"penstock.broker.handlers.{name}")
    counted = metrics.request(api_name(api_key))
    return Route(
        api_key, version, module, counted, serves_brokers=serves_brokers, is_guarded=is_guarded
    )


def _decode(route: Route, frame: bytearray | memoryview) -> tuple[RequestHeader, Any]:
    try:
        header, body_at = decode_request_header(memoryview(frame))
        request, _ = route.decode(memoryview(frame), route.version, body_at)
    except MalformedMessage as error:
        raise CloseConnection(f"a malformed {route.api_key.name} request: {error}") from None
    return header, request


async def _handle(route: Route, request: Any, context: RequestContext) -> Any:
    response = route.handle(request, context)
    return await response if isinstance(response, _AWAITED) else response


def _answer_unknown_version(frame: memoryview, metrics: Metrics) -> Parts:
    """Tell a client from the future what we speak, in the oldest form there is (KIP-511)."""
    (correlation_id,) = _CORRELATION_ID.unpack_from(frame, _KEY_AND_VERSION.size)
    response = api_versions_response(served_versions())
    response.error_code = ErrorCode.UNSUPPORTED_VERSION
    return _make_route(ApiKey.API_VERSIONS, 0, metrics).frame(correlation_id, response)


def api_versions_response(served: Mapping[ApiKey, range]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=api_key, min_version=versions[0], max_version=versions[-1])
            for api_key, versions in sorted(served.items())
        ]
    )


def versions_of(api_key: ApiKey) -> range:
    known = supported_versions(api_key)
    return range(known.start, min(known.stop, _UNSTABLE_FROM.get(api_key, known.stop)))


def served_versions() -> dict[ApiKey, range]:
    """What this broker answers, API by API; ApiVersions and docs/support.md say just this."""
    return {api_key: versions_of(api_key) for api_key in HANDLERS}
