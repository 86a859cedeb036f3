"""Health of a service, for whoever supervises it: `/-/ready` and `/-/health`.

A part of a service that works in the background reports here when it fails and when it is well
again. One service that is unwell says so and goes on; it does not end the others.
"""

from typing import TYPE_CHECKING

from starlette.routing import Route

from penstock.http.bodies import as_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_JSON = "application/json"


class Health:
    """What is wrong with the parts of a service, by their names, and whether it is ready."""

    def __init__(self, *, is_ready: bool = True) -> None:
        self.is_ready = is_ready
        self.problems: dict[str, str] = {}

    def fail(self, part: str, reason: str) -> None:
        """A part does not work."""
        self.problems[part] = reason

    def recover(self, part: str) -> None:
        """It works again."""
        self.problems.pop(part, None)

    def routes(self) -> list[Route]:
        return [Route("/-/ready", self._ready), Route("/-/health", self._health)]

    async def _ready(self, request: "Request") -> "Response":
        word, status = ("ready", 200) if self.is_ready else ("starting", 503)
        return as_json({"status": word}, media=_JSON, status=status)

    async def _health(self, request: "Request") -> "Response":
        if not self.problems:
            return as_json({"status": "ok"}, media=_JSON)
        document = {"status": "failing", "problems": dict(self.problems)}
        return as_json(document, media=_JSON, status=503)
