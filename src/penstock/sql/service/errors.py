"""Errors as ksqlDB's documents."""

from typing import Any

from penstock.errors import PenstockError
from penstock.http.errors import HttpError
from penstock.sql.asking.answering import WrongPlace
from penstock.sql.asking.questions import TooManyQueries
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.language.place import SqlSyntaxError
from penstock.sql.running.command_records import CommandRefused
from penstock.sql.running.engine import ClusterTerminated
from penstock.sql.service.requests import (
    BAD_STATEMENT,
    NOT_READY,
    SERVER_ERROR,
    SHUTTING_DOWN,
    TOO_MANY,
    WRONG_ENDPOINT,
)


def generic_document(error: HttpError) -> dict[str, Any]:
    """An error that is about no statement."""
    code = error.code if error.code >= 1000 else error.code * 100
    return {"@type": "generic_error", "error_code": code, "message": str(error)}


def translate(error: Exception) -> HttpError | None:
    """An error of ours as an answer; None: a defect."""
    match error:
        case WrongPlace():
            return HttpError(str(error), status=400, code=WRONG_ENDPOINT)
        case StatementRefused() | SqlSyntaxError():
            return HttpError(str(error), status=400, code=BAD_STATEMENT)
        case TooManyQueries():
            return HttpError(str(error), status=429, code=TOO_MANY)
        case ClusterTerminated():
            return HttpError(str(error), status=503, code=SHUTTING_DOWN)
        case CommandRefused():
            return HttpError(str(error), status=503, code=NOT_READY)
        case PenstockError():
            return HttpError(str(error), status=500, code=SERVER_ERROR)
    return None
