"""Documents in the bodies of requests and answers of version 3."""

from typing import Any

from penstock.http.bodies import read_body, served
from penstock.http.errors import BadBody, NotAcceptable, UnsupportedMedia
from penstock.http.handlers import Request, Response
from penstock.http.negotiation import is_taken, negotiated
from penstock.rest.json_text import dumps, loads


async def read_document(request: Request) -> dict[str, Any]:
    """The JSON object in the body of a request, within the bounds of its service."""
    check_media(request)
    body = await read_body(request)
    try:
        found = loads(body)
    except ValueError as error:
        raise BadBody(f"The body is not JSON: {error}", code=400) from None
    if not isinstance(found, dict):
        raise BadBody("The body is no JSON object.", code=400)
    return found


def check_media(request: Request) -> None:
    """A body that says it is something else is refused, so that no form of a web page is taken."""
    if not is_taken(request.headers.get("content-type"), served(request).offered):
        raise UnsupportedMedia("HTTP 415 Unsupported Media Type")


def answer(request: Request, value: object, *, status: int = 200) -> Response:
    """A document in the media type of the service that the client likes best."""
    return Response(dumps(value), status_code=status, media_type=media_of(request))


def media_of(request: Request) -> str:
    """The media type of the service that the client likes best."""
    media = negotiated(request.headers.get("accept"), served(request).offered)
    if media is None:
        raise NotAcceptable("HTTP 406 Not Acceptable")
    return media
