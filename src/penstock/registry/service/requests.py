"""What a request says: flags, pages, numbers in paths, and the document in its body."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from penstock.http.bodies import read_json
from penstock.http.errors import BadBody, HttpError
from penstock.http.handlers import Request, Response
from penstock.registry.finding import Shown

T = TypeVar("T")

OFFERED = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)
_TAKEN = (*OFFERED, "application/octet-stream")
ID_MAX = 2**31 - 1


def subject_of(request: Request) -> str:
    """The subject in the path."""
    return str(request.path_params["subject"])


def version_of(request: Request) -> str:
    """The version in the path, as it is written there."""
    return str(request.path_params["version"])


def flag(request: Request, name: str) -> bool:
    """A parameter that is true or, whatever else it is, false."""
    return request.query_params.get(name, "").lower() == "true"


def shown(request: Request) -> Shown:
    """Which versions a listing tells."""
    return Shown(deleted=flag(request, "deleted"), deleted_only=flag(request, "deletedOnly"))


def page(request: Request, found: Sequence[T]) -> Sequence[T]:
    """The part of a listing that `offset` and `limit` ask for; a limit below 0 is none."""
    offset, limit = _number(request, "offset", 0), _number(request, "limit", -1)
    first = max(0, offset)
    return found[first:] if limit < 0 else found[first : first + limit]


def schema_id_of(request: Request) -> int:
    """The id in the path; what is no number is no path of ours."""
    text = request.path_params["id"]
    if not text.isascii() or not text.isdecimal() or len(text) > 10 or int(text) > ID_MAX:
        raise HttpError("HTTP 404 Not Found", status=404)
    return int(text)


async def read_document(request: Request) -> dict[str, Any]:
    """The JSON object in the body."""
    document = await read_json(request, _TAKEN)
    if not isinstance(document, dict):
        raise BadBody("The body is no JSON object.")
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadBody("The body has half of a character: it cannot be stored.") from None
    return document


def plain_text(text: str) -> Response:
    """A schema by itself, as it was written."""
    return Response(text, media_type=OFFERED[0])


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 10:
        raise HttpError("HTTP 404 Not Found", status=404)
    return int(text)
