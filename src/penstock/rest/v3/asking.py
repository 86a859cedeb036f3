"""What a request of version 3 says: its cluster, numbers in its path, fields of its body."""

from collections.abc import Mapping
from typing import Any

from penstock.http.errors import HttpError
from penstock.http.handlers import Request, Response
from penstock.rest.errors import BadRequest
from penstock.rest.proxy import Proxy
from penstock.rest.v3.bodies import answer
from penstock.rest.v3.links import Document, Links

ID_MAX = 2**31 - 1


class NotThere(HttpError):
    """The path names something that does not exist."""

    status = 404

    def __init__(self, message: str = "HTTP 404 Not Found") -> None:
        super().__init__(message, code=404)


async def links_of(proxy: Proxy, request: Request) -> Links:
    """Addresses for the answer; the request must name our cluster."""
    named, own = segment(request, "cluster"), await proxy.brokers.cluster_id()
    if named != own:
        raise NotThere(f"Cluster {named} cannot be found.")
    return Links(base=base_of(proxy, request), cluster_id=own)


def base_of(proxy: Proxy, request: Request) -> str:
    """Where the client reaches us: as configured, or where it sent the request."""
    host = request.headers.get("host", "localhost")
    return proxy.config.advertised or f"{request.url.scheme}://{host}"


def segment(request: Request, name: str) -> str:
    """A part of the path, decoded."""
    return str(request.path_params[name])


def number(request: Request, name: str) -> int:
    """A part of the path that is a number; what is none is no path of ours."""
    text = segment(request, name)
    if not text.isascii() or not text.isdecimal() or len(text) > 10 or int(text) > ID_MAX:
        raise NotThere
    return int(text)


def only(found: Document | None, what: str) -> Document:
    """A resource, or that there is none."""
    if found is None:
        raise NotThere(f"{what} cannot be found.")
    return found


def created(request: Request, document: Document) -> Response:
    """The answer for a resource that is new, with its address."""
    made = answer(request, document, status=201)
    made.headers["location"] = document["metadata"]["self"]
    return made


def nothing() -> Response:
    """The answer when there is nothing more to say than that it is done."""
    return Response(status_code=204)


def text_of(body: Mapping[str, Any], name: str, *, default: str | None = None) -> str:
    """A field that is text; without a default it must be there."""
    value = body.get(name, default)
    if not isinstance(value, str):
        raise BadRequest(f"{name} is missing or not a string.")
    return value


def optional_text(body: Mapping[str, Any], name: str) -> str | None:
    """A field that is text or null or not there."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRequest(f"{name} is not a string.")
    return value


def optional_number(body: Mapping[str, Any], name: str) -> int | None:
    """A field that is a whole number of 32 bits, or null or not there."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > ID_MAX:
        raise BadRequest(f"{name} is not a whole number of 32 bits.")
    return value


def objects(body: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A field that is a list of objects; empty where it is not there."""
    value = body.get(name) or []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise BadRequest(f"{name} is not a list of objects.")
    return value


def is_true(body: Mapping[str, Any], name: str) -> bool:
    """A field that is true or false; false where it is not there."""
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise BadRequest(f"{name} is neither true nor false.")
    return value
