"""From a frame to its handler and back: the one place that knows which APIs are served.

`HANDLERS` is the truth about what this broker can do: ApiVersions answers from it, and
docs/support.md is made from it. `PEER_HANDLERS` is what brokers ask of each other, on their own
listener alone. Errors become codes here and nowhere else. Topics, logs and records are the
handlers' business.
"""

import importlib
import logging
import struct
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from types import CoroutineType, ModuleType
from typing import Any, cast

from penstock.broker.context import ANONYMOUS, Broker, RequestContext
from penstock.broker.quotas.bill import Bill, bill_for
from penstock.errors import ErrorCode, ProtocolError, UnknownServerError
from penstock.net.connection import Answer, CloseConnection, Connection, Parts
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
    ApiKey.DESCRIBE_CONFIGS: "describe_configs",
    ApiKey.ALTER_CONFIGS: "alter_configs",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "alter_replica_log_dirs",
    ApiKey.DESCRIBE_LOG_DIRS: "describe_log_dirs",
    ApiKey.DELETE_GROUPS: "delete_groups",
    ApiKey.CREATE_PARTITIONS: "create_partitions",
    ApiKey.ELECT_LEADERS: "elect_leaders",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "incremental_alter_configs",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "alter_partition_reassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "list_partition_reassignments",
    ApiKey.OFFSET_DELETE: "offset_delete",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: "describe_client_quotas",
    ApiKey.ALTER_CLIENT_QUOTAS: "alter_client_quotas",
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

# What only the controller can do; other brokers pass it on (broker/forwarding.py).
CONTROLLER_APIS = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_CLIENT_QUOTAS,
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
_HEADER_BYTES_MIN = 8  # Key, version and correlation id, which every header of any time has.


class Route:
    """How one version of one API is decoded, handled and answered."""

    __slots__ = (
        "api_key",
        "decode",
        "error_response",
        "handle",
        "header_tail",
        "metrics",
        "version",
    )

    def __init__(
        self, api_key: ApiKey, version: int, module: ModuleType, metrics: RequestMetrics
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.metrics = metrics
        # What the response header of this version has behind the correlation id.
        self.header_tail = encode_response_header(api_key, version, 0)[_CORRELATION_ID.size :]
        # Bytes after the request are not looked at, as in Apache Kafka: librdkafka leaves three
        # of them behind when it asks for the metadata of all topics.
        self.decode: Callable[..., tuple[Any, int]] = request_class(api_key).decode_prefix
        self.handle: Callable[[Any, RequestContext], Any] = module.handle
        if api_key in CONTROLLER_APIS:
            self.handle = partial(_by_the_controller, module)
        self.error_response: Callable[[Any, ProtocolError], Any] = getattr(
            module, "error_response", None
        ) or _plain_error_response(api_key)

    def framed(self, correlation_id: int, response: Any) -> Parts:
        """The answer as it goes out: its size, its header, its body."""
        parts: Parts = response.encode_parts(self.version)
        size = _CORRELATION_ID.size + len(self.header_tail)
        for part in parts:
            size += len(part)
        lead = _SIZE_AND_CORRELATION_ID.pack(size, correlation_id) + self.header_tail
        if isinstance(parts[0], bytes):
            parts[0] = lead + parts[0]
        else:
            parts.insert(0, lead)
        return parts


def _by_the_controller(module: ModuleType, request: Any, context: RequestContext) -> Any:
    """Here, if this broker is the controller, or it is passed on to the one that is."""
    broker = context.broker
    if broker.forwarder is None:
        return module.handle(request, context)
    if broker.controller is not None:
        return _patiently(module, request, context)
    pass_on = getattr(module, "pass_on", None)  # Where a part of it is this broker's own matter.
    if pass_on is not None:
        return pass_on(request, context, broker.forwarder)
    return broker.forwarder.forward(request, context)


async def _patiently(module: ModuleType, request: Any, context: RequestContext) -> Any:
    """While ZooKeeper is away, a client's request waits for it as long as the client does."""
    from penstock.broker.forwarding import timeout_s_of
    from penstock.meta.patience import patient_for

    with patient_for(timeout_s_of(request)):
        response = module.handle(request, context)
        return await response if type(response) is CoroutineType else response


def _plain_error_response(api_key: ApiKey) -> Callable[[Any, ProtocolError], Any]:
    def answer(_request: Any, error: ProtocolError) -> Any:
        response = response_class(api_key)()
        if not hasattr(response, "error_code"):
            raise CloseConnection(f"{api_key.name} failed and cannot say so: {error}")
        response.error_code = int(error.code)
        if hasattr(response, "error_message"):
            response.error_message = str(error)
        return response

    return answer


class Dispatcher:
    """Serves the frames of one listener."""

    def __init__(
        self,
        broker: Broker,
        *,
        listener: str,
        pull_lost: Callable[[int, int], None] | None = None,
    ) -> None:
        self._broker = broker
        self._quotas = broker.quotas
        self._listener = listener
        self._is_for_peers = (
            broker.peers is not None and listener == broker.config.inter_broker_listener_name
        )
        # Told the broker and its epoch when the connection it pulls images on is gone.
        self._pull_lost = pull_lost
        self._routes: dict[tuple[int, int], Route] = {}  # By API key and version.

    def __call__(self, connection: Connection, frame: memoryview) -> Answer:
        started_s = time.perf_counter()
        if len(frame) < _HEADER_BYTES_MIN:
            raise CloseConnection(f"a request of {len(frame)} bytes has no header")
        wanted = _KEY_AND_VERSION.unpack_from(frame)
        route = self._routes.get(wanted) or self._find_route(*wanted)
        if route is None:
            return _unknown_api_versions(frame, self._broker.metrics)
        try:
            header, body_at = decode_request_header(frame)
            request, _ = route.decode(frame, route.version, body_at)
        except MalformedMessage as error:
            raise CloseConnection(f"a malformed {route.api_key.name} request: {error}") from None
        context = RequestContext(self._broker, header, self._listener, connection.peer)
        if route.api_key is ApiKey.IMAGE_FETCH and self._pull_lost is not None:
            connection.on_close = partial(self._pull_lost, request.broker_id, request.broker_epoch)
        bill = None
        if self._quotas.is_active:
            bill = bill_for(
                self._quotas,
                route.api_key,
                request,
                context=context,
                connection=connection,
                request_bytes=len(frame),
            )
        try:
            response = route.handle(request, context)
        except ProtocolError as error:
            response = route.error_response(request, error)
            route.metrics.fail(error.code.name)
        except CloseConnection:
            raise
        except Exception as error:  # noqa: BLE001 - logged with its traceback, told as a code
            response = _unexpected(route, request, error)
        if type(response) is CoroutineType:
            if bill is not None:
                bill.note_time(time.perf_counter() - started_s)
            return self._later(route, request, context, response, started_s, bill)
        took_s = time.perf_counter() - started_s
        route.metrics.observe(took_s)
        if bill is not None:
            bill.note_time(took_s)
            bill.settle(response)
        if response is None:
            return None
        return route.framed(header.correlation_id, response)

    async def handle(
        self,
        request: Request,
        version: int,
        *,
        client_id: str | None = None,
        client_address: str = "",
        principal: str = ANONYMOUS,
        listener: str | None = None,
    ) -> Response | None:
        """The answer to a request that came without a socket; None: it wants none.

        For what this broker asks itself, for requests that were passed on, and for brokers that
        live together in one process on a simulated network.
        """
        key = request.api_key
        route = self._routes.get((key, version)) or self._find_route(key, version)
        if route is None:
            raise CloseConnection(f"version {version} of {api_name(key)} is not served")
        header = RequestHeader(key, version, 0, client_id)
        context = RequestContext(
            self._broker, header, listener or self._listener, client_address, principal
        )
        try:
            response = route.handle(request, context)
            if type(response) is CoroutineType:
                response = await response
        except ProtocolError as error:
            response = route.error_response(request, error)
            route.metrics.fail(error.code.name)
        except CloseConnection:
            raise
        except Exception as error:  # noqa: BLE001 - logged with its traceback, told as a code
            response = _unexpected(route, request, error)
        if context.throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = context.throttle_ms
        return cast("Response | None", response)

    async def _later(
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
        except ProtocolError as error:
            answer = route.error_response(request, error)
            route.metrics.fail(error.code.name)
        except CloseConnection:
            raise
        except Exception as error:  # noqa: BLE001 - logged with its traceback, told as a code
            answer = _unexpected(route, request, error)
        route.metrics.observe(time.perf_counter() - started_s)
        if bill is not None:
            bill.settle(answer)
        if answer is None:
            return None
        return route.framed(context.header.correlation_id, answer)

    def _find_route(self, key: int, version: int) -> Route | None:
        """The route of a version served for the first time; None: an unknown ApiVersions."""
        try:
            api_key = ApiKey(key)
            if not (self._is_for_peers and api_key in PEER_HANDLERS):
                HANDLERS[api_key]
        except (ValueError, KeyError):
            raise CloseConnection(f"API key {key} is not served") from None
        served = versions_of(api_key)
        if version not in served:
            if api_key is ApiKey.API_VERSIONS:
                return None
            raise CloseConnection(
                f"version {version} of {api_name(api_key)} is not served, "
                f"{served[0]} to {served[-1]} are"
            )
        route = self._routes[key, version] = _route(api_key, version, self._broker.metrics)
        return route


def api_name(api_key: ApiKey) -> str:
    """The name as Kafka's metrics spell it: Produce, ListOffsets."""
    return "".join(word.capitalize() for word in api_key.name.split("_"))


def _route(api_key: ApiKey, version: int, metrics: Metrics) -> Route:
    name = HANDLERS.get(api_key) or PEER_HANDLERS[api_key]
    module = importlib.import_module(f"penstock.broker.handlers.{name}")
    return Route(api_key, version, module, metrics.request(api_name(api_key)))


def _unexpected(route: Route, request: Any, error: Exception) -> Any:
    """An error of ours: the client gets a code, the log gets the traceback."""
    name, version = api_name(route.api_key), route.version
    log.error("%s version %d failed unexpectedly", name, version, exc_info=error)
    route.metrics.fail(ErrorCode.UNKNOWN_SERVER_ERROR.name)
    return route.error_response(request, UnknownServerError("see the broker's log"))


def _unknown_api_versions(frame: memoryview, metrics: Metrics) -> Parts:
    """Tell a client from the future what we speak, in the oldest form there is (KIP-511)."""
    (correlation_id,) = _CORRELATION_ID.unpack_from(frame, _KEY_AND_VERSION.size)
    response = api_versions_response(served_versions())
    response.error_code = ErrorCode.UNSUPPORTED_VERSION
    return _route(ApiKey.API_VERSIONS, 0, metrics).framed(correlation_id, response)


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
