"""Bodies of requests within bounds of size and time, and JSON out of and into them."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.http.errors import (
    BadBody,
    BodyTooLarge,
    BodyTooSlow,
    NotAcceptable,
    UnsupportedMedia,
)
from penstock.http.negotiation import is_taken, media_name, negotiated

if TYPE_CHECKING:
    from penstock.http.service import Served

_DROPPED_BYTES_MAX = 8 << 20
_QUIET_S = 0.2
SERVED = "penstock.served"  # Where a scope holds what its service takes and offers.
_BODY = "penstock.body"  # Where it holds a body that was read.


def served(request: Request) -> "Served":
    """What the service of this request takes and offers."""
    found: Served = request.scope[SERVED]
    return found


async def read_body(request: Request) -> bytes:
    """The whole body, also when it is asked for again; HttpError if it is too large or slow."""
    known = request.scope.get(_BODY)
    if known is not None:
        return bytes(known)
    limits = served(request)
    pieces = request.stream()
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_timeout_s):
            _check_length(request, limits.body_bytes_max)
            async for piece in pieces:
                body += piece
                if len(body) > limits.body_bytes_max:
                    raise BodyTooLarge(limits.body_bytes_max)
    except TimeoutError:
        raise BodyTooSlow(limits.body_timeout_s) from None
    except BodyTooLarge:
        body.clear()
        await _drop(pieces)
        raise
    request.scope[_BODY] = bytes(body)
    return bytes(body)


async def _drop(pieces: AsyncIterator[bytes]) -> None:
    """Take in a little more: a client that is still sending would be cut off, and not answered."""
    dropped = 0
    with contextlib.suppress(TimeoutError):
        while dropped < _DROPPED_BYTES_MAX:
            async with asyncio.timeout(_QUIET_S):
                piece = await anext(pieces, None)
            if piece is None:
                return
            dropped += len(piece)


async def read_json(request: Request, taken: Iterable[str] | None = None) -> Any:
    """The body as JSON; of the media types taken, by default those the service offers."""
    kind, known = request.headers.get("content-type"), taken or served(request).offered
    if not is_taken(kind, known):
        raise UnsupportedMedia(f"A body of type {media_name(kind or '')} is not taken here.")
    body = await read_body(request)
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadBody(f"The body is not JSON: {error}") from None


def json_answer(
    request: Request, value: object, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """A document in the media type that the client likes best."""
    offered = served(request).offered
    media = negotiated(request.headers.get("accept"), offered)
    if media is None:
        raise NotAcceptable(f"Offered here are: {', '.join(offered)}.")
    return as_json(value, media=media, status=status, headers=headers)


def as_json(
    value: object, *, media: str, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """A document in a media type that is settled."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Response(text, status_code=status, media_type=media, headers=headers)


def _check_length(request: Request, bytes_max: int) -> None:
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said) > bytes_max:
        raise BodyTooLarge(bytes_max)
