"""Bodies of requests as values; what is not of their form is refused with ksqlDB's code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from penstock.errors import ConfigError
from penstock.http.bodies import read_body
from penstock.http.errors import HttpError
from penstock.http.handlers import Request
from penstock.sql.language.parse import parse_one
from penstock.sql.language.statements import Statement
from penstock.sql.language.variables import substitute
from penstock.sql.running.scope import RequestScope
from penstock.sql.service.settings import check_property

BAD_REQUEST = 40000
BAD_STATEMENT = 40001
WRONG_ENDPOINT = 40002
TOO_MANY = 42900
SERVER_ERROR = 50000
NOT_READY = 50300
SHUTTING_DOWN = 50303


class MalformedRequest(HttpError):
    """A body that is not what the address takes."""

    status = 400

    def __init__(self, message: str, code: int = BAD_REQUEST) -> None:
        super().__init__(message, code=code)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlRequest:
    """Statements and what holds for them."""

    text: str
    scope: RequestScope
    sequence_number: int | None = None


async def json_body(request: Request) -> dict[str, Any]:
    """The body as an object, whatever type it says to be: curl says it is a form."""
    return json_object(await read_body(request))


def json_object(body: bytes) -> dict[str, Any]:
    """Bytes that are a JSON object."""
    try:
        found = json.loads(body, parse_float=Decimal)  # Exact, as columns may be.
    except (ValueError, RecursionError) as error:
        raise MalformedRequest(f"Malformed request: the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise MalformedRequest("Malformed request: an object is expected.")
    return found


def sql_request(document: Mapping[str, Any], *, text: str, properties: str) -> SqlRequest:
    """A request; `text` and `properties` are the names that its address has for them."""
    statements = document.get(text)
    if not isinstance(statements, str):
        raise MalformedRequest(f'"{text}" field must be given, as a string.')
    number = document.get("commandSequenceNumber")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise MalformedRequest("commandSequenceNumber must be a number.")
    return SqlRequest(
        text=statements,
        scope=RequestScope(
            properties=_checked(_texts(document, properties)),
            variables=_texts(document, "sessionVariables"),
        ),
        sequence_number=number,
    )


def statement_of(asked: SqlRequest) -> Statement:
    """The one statement of a request, with its variables filled in."""
    return parse_one(substitute(asked.text, asked.scope.variables))


def _texts(document: Mapping[str, Any], name: str) -> dict[str, str]:
    found = document.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise MalformedRequest(f"{name} must be an object.")
    return {str(key): _text(value) for key, value in found.items() if value is not None}


def _checked(properties: dict[str, str]) -> dict[str, str]:
    for name, value in properties.items():
        try:
            check_property(name, value)
        except ConfigError as error:
            raise MalformedRequest(str(error)) from None
    return properties


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise MalformedRequest("Properties and variables must be strings, numbers or booleans.")
