"""The routes of plug-ins: which there are, what settings they take, whether some are right."""

from penstock.connect.herder.validation import ConnectorChecks
from penstock.connect.plugins.lookup import plugin_documents
from penstock.connect.rest.documents import call, config_of, read_document
from penstock.http.bodies import json_answer
from penstock.http.handlers import Request, Response, Route


class PluginRoutes:
    """Each method is a route."""

    def __init__(self, checks: ConnectorChecks) -> None:
        self._checks = checks

    def routes(self) -> list[Route]:
        """All of them."""
        at = "/connector-plugins"
        return [
            Route(at, self._list, methods=["GET"]),
            Route(f"{at}/{{plugin:segment}}/config", self._config, methods=["GET"]),
            Route(f"{at}/{{plugin:segment}}/config/validate", self._validate, methods=["PUT"]),
        ]

    async def _list(self, request: Request) -> Response:
        connectors_only = request.query_params.get("connectorsOnly", "true").lower() != "false"
        found = await call(lambda: plugin_documents(connectors_only=connectors_only))
        return json_answer(request, found)

    async def _config(self, request: Request) -> Response:
        plugin = str(request.path_params["plugin"])
        version = request.query_params.get("version")
        return json_answer(request, await call(lambda: self._checks.definitions(plugin, version)))

    async def _validate(self, request: Request) -> Response:
        plugin = str(request.path_params["plugin"])
        config = config_of(await read_document(request))
        return json_answer(request, await call(lambda: self._checks.document(plugin, config)))
