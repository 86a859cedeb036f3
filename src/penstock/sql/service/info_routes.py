"""What a server tells of itself: /info, /healthcheck, /status, /clusterStatus and their like."""

import asyncio
import importlib.metadata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from penstock.errors import PenstockError
from penstock.http.bodies import as_json
from penstock.http.errors import HttpError
from penstock.http.handlers import BaseRoute, Request, Response, Route
from penstock.sql.answers.entities import status_document
from penstock.sql.running.engine import SqlEngine
from penstock.sql.running.peer_states import PEER_PATH, states_document
from penstock.sql.running.server_group import ServerGroup
from penstock.sql.service.media import KSQL_JSON, media_of
from penstock.sql.service.requests import MalformedRequest
from penstock.sql.service.settings import SqlConfig, is_property

_NOT_FOUND = 40400


class InfoRoutes:
    """Handlers for one service; `cluster_id` asks the brokers and may wait for them."""

    def __init__(
        self,
        engine: SqlEngine,
        config: SqlConfig,
        cluster_id: Callable[[], str],
        threads: ThreadPoolExecutor,
        servers: ServerGroup,
    ) -> None:
        self._engine = engine
        self._servers = servers
        self._config = config
        self._ask = cluster_id
        self._threads = threads
        self._cluster_id: str | None = None

    def routes(self) -> list[BaseRoute]:
        """What is served here."""
        status = "/status/{kind:segment}/{name:segment}/{action:segment}"
        return [
            Route("/", self._root),
            Route("/info", self._info),
            Route("/healthcheck", self._health),
            Route("/status", self._statuses),
            Route(status, self._status),
            Route("/clusterStatus", self._cluster_status),
            Route(PEER_PATH, self._query_states),
            Route("/v1/metadata", self._metadata),
            Route("/v1/metadata/id", self._metadata),
            Route("/serverMetadata", self._metadata),
            Route("/is_valid_property/{name:segment}", self._is_valid_property),
        ]

    async def _root(self, request: Request) -> Response:
        return Response(status_code=307, headers={"location": "/info"})

    async def _info(self, request: Request) -> Response:
        info = {
            "version": importlib.metadata.version("penstock"),
            "kafkaClusterId": await self._found_cluster_id(),
            "ksqlServiceId": self._config.service_id,
            "serverStatus": "RUNNING" if self._engine.is_open else "STARTING",
        }
        return _answer(request, {"KsqlServerInfo": info})

    async def _health(self, request: Request) -> Response:
        kafka = await self._is_kafka_well()
        parts = {
            "metastore": {"isHealthy": True},
            "kafka": {"isHealthy": kafka},
            "commandRunner": {"isHealthy": self._engine.is_open},
        }
        is_well = all(part["isHealthy"] for part in parts.values())
        document = {"isHealthy": is_well, "details": parts, "serverState": "READY"}
        return _answer(request, document, status=200 if is_well else 503)

    async def _statuses(self, request: Request) -> Response:
        shown = {
            name: "ERROR" if one.is_error else "SUCCESS"
            for name, one in sorted(self._engine.statuses.items())
        }
        return _answer(request, {"commandStatuses": shown})

    async def _status(self, request: Request) -> Response:
        name = "/".join(str(request.path_params[part]) for part in ("kind", "name", "action"))
        found = self._engine.statuses.get(name)
        if found is None:
            raise HttpError("Command not found", status=404, code=_NOT_FOUND)
        return _answer(request, status_document(found))

    async def _cluster_status(self, request: Request) -> Response:
        verdict = self._servers.verdict
        shown = {}
        for url in (self._servers.url,) if verdict is None else verdict.servers:
            runs = verdict is not None and verdict.url == url
            shown[url.partition("://")[2]] = {
                "hostAlive": True,
                "lastStatusUpdateMs": self._servers.seen_ms,
                "activeStandbyPerQuery": self._stores() if runs else {},
                "hostStoreLags": {"stateStoreLags": {}, "updateTimeMs": self._servers.seen_ms},
            }
        return _answer(request, {"clusterStatus": shown})

    def _stores(self) -> dict[str, Any]:
        """The queries that have stores, which lie where they run; nobody keeps a second copy."""
        made = {}
        for name in sorted(self._engine.catalog.queries):
            hosted = self._engine.hosted(name)
            stores = [] if hosted is None else sorted(s.name for s in hosted.topology.stores)
            if stores:
                made[name] = {
                    "activeStores": stores,
                    "activePartitions": [],
                    "standByStores": [],
                    "standByPartitions": [],
                }
        return made

    async def _query_states(self, request: Request) -> Response:
        """For the other servers of the service: the queries that run here."""
        engine = self._engine
        names = list(engine.catalog.queries) if engine.runs_queries else []
        return _answer(request, states_document({name: engine.health(name) for name in names}))

    async def _metadata(self, request: Request) -> Response:
        scope = {
            "path": [],
            "clusters": {
                "kafka-cluster": await self._found_cluster_id(),
                "ksql-cluster": self._config.service_id,
            },
        }
        if request.url.path.endswith("/id"):
            return _answer(request, {"id": "", "scope": scope})
        version = importlib.metadata.version("penstock")
        return _answer(request, {"version": version, "clusterId": scope})

    async def _is_valid_property(self, request: Request) -> Response:
        name = str(request.path_params["name"])
        if not is_property(name):
            raise MalformedRequest(
                f"One or more properties overrides set locally are prohibited: {name}"
            )
        return _answer(request, True)

    async def _found_cluster_id(self) -> str:
        if self._cluster_id is None:
            loop = asyncio.get_running_loop()
            self._cluster_id = await loop.run_in_executor(self._threads, self._ask)
        return self._cluster_id

    async def _is_kafka_well(self) -> bool:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, self._ask)
        except PenstockError:
            return False
        return True


def _answer(request: Request, document: Any, *, status: int = 200) -> Response:
    return as_json(document, media=media_of(request, KSQL_JSON), status=status)
