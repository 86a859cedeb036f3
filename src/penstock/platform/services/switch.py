"""What answers on a service's port: the service while it is open, else somebody who says why not.

So a port of the platform answers from its start to its end, and a supervisor learns from
`/-/health` what is wrong.
"""

from penstock.http.errors import HttpError
from penstock.http.handlers import ASGIApp, Receive, Request, Response, Route, Scope, Send
from penstock.http.health import Health
from penstock.http.service import Served, service

_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
_RETRY_AFTER_S = 1


class ServiceSwitch:
    """The application of one port."""

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self._title = title
        self._app: ASGIApp | None = None  # None: the service is not open.
        self._health = Health(is_ready=False)
        routes = [Route("/{path:path}", self._refuse, methods=list(_METHODS))]
        self._away = service(routes, Served(offered=["application/json"]), health=self._health)

    @property
    def problem(self) -> str | None:
        """What is wrong; None while it is open or opens for the first time."""
        return self._health.problems.get(self.name)

    def serve(self, app: ASGIApp) -> None:
        """The service is open."""
        self._health.recover(self.name)
        self._app = app

    def refuse(self, problem: str | None = None) -> None:
        """It is open no more, or could not be opened; None: nothing is wrong with it."""
        self._app = None
        if problem is not None:
            self._health.fail(self.name, problem)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._app or self._away)(scope, receive, send)

    async def _refuse(self, request: Request) -> Response:
        reason = f": {self.problem}" if self.problem else ""
        raise HttpError(
            f"The {self._title} is not open yet{reason}",
            status=503,
            headers={"retry-after": str(_RETRY_AFTER_S)},
        )
