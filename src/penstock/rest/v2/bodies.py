"""Bodies and answers of version 2: JSON within bounds, in the media types that it knows."""

from typing import Any

from penstock.http.bodies import read_body, served
from penstock.http.errors import BadBody, HttpError, NotAcceptable, UnsupportedMedia
from penstock.http.handlers import Request, Response
from penstock.http.negotiation import negotiated
from penstock.rest.payloads.plain import dump_json, load_json
from penstock.rest.v2.media import is_plain

NOT_ACCEPTABLE = "HTTP 406 Not Acceptable"
UNSUPPORTED = "HTTP 415 Unsupported Media Type"


async def read_document(request: Request) -> dict[str, Any]:
    """The JSON object in a body without records; empty where there is no body."""
    if not is_plain(request.headers.get("content-type")):
        raise UnsupportedMedia(UNSUPPORTED)
    body = await read_body(request)
    return parse_document(body) if body else {}


async def read_required(request: Request) -> dict[str, Any]:
    """The same, where nothing can be done without a body."""
    found = await read_document(request)
    if not found:
        raise HttpError("Payload error. Request body is empty.", status=422, code=42206)
    return found


def parse_document(body: bytes) -> dict[str, Any]:
    """A JSON object; BadBody says what else it is."""
    try:
        found = load_json(body)
    except (ValueError, RecursionError) as error:
        raise BadBody(f"The body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadBody("The body is no JSON object.")
    return found


def answer(request: Request, value: object, *, status: int = 200) -> Response:
    """A document in the media type that the client likes best."""
    media = negotiated(request.headers.get("accept"), served(request).offered)
    if media is None:
        raise NotAcceptable(NOT_ACCEPTABLE)
    return Response(dump_json(value), status_code=status, media_type=media)


def nothing() -> Response:
    """It was done, and there is nothing to say."""
    return Response(status_code=204)
