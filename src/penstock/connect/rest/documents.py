"""What a request says: the document in its body, flags, and configurations as texts."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from penstock.connect.herder.refusals import RequestRefused
from penstock.http.bodies import read_body
from penstock.http.handlers import Request, Response

T = TypeVar("T")


async def call(work: Callable[[], T]) -> T:
    """Requests wait for topics, so they are made in threads."""
    return await asyncio.to_thread(work)


async def read_document(request: Request) -> dict[str, Any]:
    """The object in the body. Connect answers 500 where there is none, so do we."""
    body = await read_body(request)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(500, f"The body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise RequestRefused(500, "The body is no JSON object.")
    return document


def refuse_others(document: dict[str, Any], known: Sequence[str]) -> None:
    """Refuse a field that means nothing: it may be a known one, misspelt."""
    for name in document:
        if name not in known:
            fields = ", ".join(f'"{one}"' for one in known)
            raise RequestRefused(
                500,
                f'Unrecognized field "{name}", not marked as ignorable'
                f" ({len(known)} known properties: {fields})",
            )


async def read_configs(request: Request) -> list[dict[str, str]]:
    """The list of configurations in the body."""
    try:
        found = json.loads(await read_body(request))
    except (ValueError, RecursionError) as error:
        raise RequestRefused(500, f"The body is not JSON: {error}") from None
    if not isinstance(found, list):
        raise RequestRefused(500, "The body is no list of configurations.")
    return [config_of(one) for one in found]


def config_of(found: object) -> dict[str, str]:
    """A configuration: values that are no texts become texts, as Connect takes them."""
    if not isinstance(found, dict):
        raise RequestRefused(500, "The configuration is no JSON object.")
    return {str(name): text_of(value) for name, value in found.items() if value is not None}


def text_of(value: object) -> str:
    """A setting as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise RequestRefused(500, f"The configuration has {json.dumps(value)}: write it as a text.")


def is_set(request: Request, name: str) -> bool:
    """A flag of the query."""
    return request.query_params.get(name, "").lower() == "true"


def empty(status: int) -> Response:
    """An answer without a body."""
    return Response(status_code=status)
