"""Paths as they were sent: `%2F` in a name is part of the name and not a way down.

Servers decode a path before it is routed, so a subject called `a/b` would become two segments.
Here routes see the path undecoded, and a parameter written `{subject:segment}` is decoded alone.
"""

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from starlette.convertors import Convertor, register_url_convertor

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class PathSegment(Convertor[str]):
    """One segment of a path, decoded."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value, errors="replace")

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


register_url_convertor("segment", PathSegment())


class WithoutFinalSlash:
    """Takes `/connectors/` for `/connectors`, where Java's services do."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        raw, path = scope.get("raw_path"), scope.get("path", "")
        if path.endswith("/") and path != "/" and (raw is None or raw.endswith(b"/")):
            scope = {**scope, "path": path[:-1]}
            if raw is not None:
                scope["raw_path"] = raw[:-1]
        await self._app(scope, receive, send)


class UndecodedPaths:
    """Gives the routes the path as the client wrote it."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        raw = scope.get("raw_path")
        if raw is not None:
            scope = {**scope, "path": raw.decode("latin-1")}
        await self._app(scope, receive, send)
