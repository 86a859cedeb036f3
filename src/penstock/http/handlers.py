"""What a handler is written with: Starlette's words, under one address for all services."""

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = [
    "ASGIApp",
    "Receive",
    "Request",
    "Response",
    "Route",
    "Scope",
    "Send",
    "StreamingResponse",
]
