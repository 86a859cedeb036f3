"""What a handler is written with: Starlette's words, under one address for all services."""

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

__all__ = ["ASGIApp", "Request", "Response", "Route", "StreamingResponse"]
