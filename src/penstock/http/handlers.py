"""What a handler is written with: Starlette's words, under one address for all services."""

from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from penstock.http.paths import PathSegment  # Known to routes from here on: `{topic:segment}`.

__all__ = [
    "ASGIApp",
    "BaseRoute",
    "ClientDisconnect",
    "HTTPConnection",
    "PathSegment",
    "Receive",
    "Request",
    "Response",
    "Route",
    "Scope",
    "Send",
    "StreamingResponse",
    "WebSocket",
    "WebSocketDisconnect",
    "WebSocketRoute",
]
