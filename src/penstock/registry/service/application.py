"""The registry's HTTP interface as one application, with its errors in Confluent's form."""

from dataclasses import dataclass

from penstock import __version__
from penstock.http.bodies import json_answer
from penstock.http.errors import HttpError
from penstock.http.handlers import ASGIApp, Request, Response, Route
from penstock.http.service import Guard, Served, service
from penstock.registry.errors import RegistryError
from penstock.registry.service.forwarding import LeaderWrites
from penstock.registry.service.requests import OFFERED
from penstock.registry.service.schemas import SchemaRoutes
from penstock.registry.service.settings import SettingRoutes
from penstock.registry.service.store import SchemaStore
from penstock.registry.service.subjects import SubjectRoutes


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryNames:
    """What this registry says of itself."""

    kafka_cluster_id: str = ""
    group_id: str = "schema-registry"


def application(
    store: SchemaStore,
    writes: LeaderWrites,
    guard: Guard | None = None,
    names: RegistryNames | None = None,
) -> ASGIApp:
    """All routes over one store; what changes it goes to the leader."""
    routes = [
        *SchemaRoutes(store, writes).routes(),  # Routes are tried in order; most ask by id.
        *SubjectRoutes(store, writes).routes(),
        Route("/", _root, methods=["GET"]),
        *_metadata_routes(names or RegistryNames()),
        *SettingRoutes(store, writes).routes(),
    ]
    return service(routes, Served(offered=OFFERED), translate=_as_http, guard=guard)


def _metadata_routes(names: RegistryNames) -> list[Route]:
    clusters = {
        "kafka-cluster": names.kafka_cluster_id,
        "schema-registry-cluster": names.group_id,
    }

    async def tell_id(request: Request) -> Response:
        return json_answer(request, {"scope": {"path": [], "clusters": clusters}, "id": ""})

    async def tell_version(request: Request) -> Response:
        return json_answer(request, {"version": __version__, "commitId": ""})

    return [
        Route("/v1/metadata/id", tell_id, methods=["GET"]),
        Route("/v1/metadata/version", tell_version, methods=["GET"]),
    ]


async def _root(request: Request) -> Response:
    return json_answer(request, {})


def _as_http(error: Exception) -> HttpError | None:
    if not isinstance(error, RegistryError):
        return None
    return HttpError(error.sentence, status=error.status, code=error.code)
