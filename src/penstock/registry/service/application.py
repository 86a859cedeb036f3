"""The registry's HTTP interface as one application, with its errors in Confluent's form."""

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


def application(store: SchemaStore, writes: LeaderWrites, guard: Guard | None = None) -> ASGIApp:
    """All routes over one store; what changes it goes to the leader."""
    routes = [
        Route("/", _root, methods=["GET"]),
        *SubjectRoutes(store, writes).routes(),
        *SchemaRoutes(store).routes(),
        *SettingRoutes(store, writes).routes(),
    ]
    return service(routes, Served(offered=OFFERED), translate=_as_http, guard=guard)


async def _root(request: Request) -> Response:
    return json_answer(request, {})


def _as_http(error: Exception) -> HttpError | None:
    if not isinstance(error, RegistryError):
        return None
    return HttpError(error.sentence, status=error.status, code=error.code)
