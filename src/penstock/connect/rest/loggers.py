"""The routes of loggers: how much each prints, changed while the worker runs."""

from penstock.connect.herder.loggers import LEVELS
from penstock.connect.herder.refusals import RequestRefused
from penstock.connect.herder.requests import ConnectRequests
from penstock.connect.rest.documents import call, empty, read_document
from penstock.http.bodies import json_answer
from penstock.http.handlers import Request, Response, Route


class LoggerRoutes:
    """Each method is a route."""

    def __init__(self, requests: ConnectRequests) -> None:
        self._ask = requests
        self._levels = requests.herder.levels

    def routes(self) -> list[Route]:
        """All of them."""
        at = "/admin/loggers"
        return [
            Route(at, self._list, methods=["GET"]),
            Route(f"{at}/{{logger:segment}}", self._get, methods=["GET"]),
            Route(f"{at}/{{logger:segment}}", self._put, methods=["PUT"]),
        ]

    async def _list(self, request: Request) -> Response:
        names = self._levels.names()
        return json_answer(request, {name: self._levels.document(name) for name in names})

    async def _get(self, request: Request) -> Response:
        name = str(request.path_params["logger"])
        if not self._levels.has(name):
            raise RequestRefused(404, f"Logger {name} not found.")
        return json_answer(request, self._levels.document(name))

    async def _put(self, request: Request) -> Response:
        name = str(request.path_params["logger"])
        word = (await read_document(request)).get("level")
        if word is None:
            raise RequestRefused(400, "Desired 'level' parameter was not specified in request.")
        level = str(word).upper()
        if level not in LEVELS:
            raise RequestRefused(404, f"invalid log level '{word}'.")
        if request.query_params.get("scope", "worker").lower() == "cluster":
            await call(lambda: self._ask.set_group_level(name, level))  # Read back by all workers.
            return empty(204)
        return json_answer(request, self._levels.change(name, level))
