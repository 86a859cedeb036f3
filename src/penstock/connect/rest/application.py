"""The REST interface as one application, with its errors in Connect's form."""

from penstock.connect.herder.requests import ConnectRequests, as_refusal
from penstock.connect.rest.connectors import ConnectorRoutes
from penstock.connect.rest.forwarding import Forwarding, unless_signed
from penstock.connect.rest.loggers import LoggerRoutes
from penstock.connect.rest.options import with_options
from penstock.connect.rest.plugins import PluginRoutes
from penstock.http.bodies import json_answer
from penstock.http.errors import HttpError
from penstock.http.handlers import ASGIApp, Request, Response, Route
from penstock.http.health import Health
from penstock.http.paths import WithoutFinalSlash
from penstock.http.service import Guard, Served, service

OFFERED = ("application/json",)
KAFKA_VERSION = "4.3.1"  # What tools ask for: the release whose interface this is.


def application(
    requests: ConnectRequests,
    cluster_id: str,
    health: Health,
    forwarding: Forwarding,
    guard: Guard | None = None,
) -> ASGIApp:
    """All routes of one worker."""

    async def root(request: Request) -> Response:
        told = {"version": KAFKA_VERSION, "commit": "penstock", "kafka_cluster_id": cluster_id}
        return json_answer(request, told)

    async def tell_health(request: Request) -> Response:
        if health.is_ready:
            message = "Worker has completed startup and is ready to handle requests."
            return json_answer(request, {"status": "healthy", "message": message})
        told = {"status": "starting", "message": "Worker is still starting up."}
        return json_answer(request, told, status=503)

    routes = [
        Route("/", root, methods=["GET"]),
        Route("/health", tell_health, methods=["GET"]),
        *ConnectorRoutes(requests, forwarding).routes(),
        *PluginRoutes(requests.checks).routes(),
        *LoggerRoutes(requests).routes(),
    ]
    door = None if guard is None else unless_signed(guard)
    served = service(
        with_options(routes), Served(offered=OFFERED), health=health, translate=_as_http, guard=door
    )
    return WithoutFinalSlash(served)


def _as_http(error: Exception) -> HttpError | None:
    refusal = as_refusal(error)
    return None if refusal is None else HttpError(str(refusal), status=refusal.status)
