"""What can go wrong between a client and a SQL service."""

from typing import Any

from penstock.errors import PenstockError

_MESSAGE_CHARACTERS_MAX = 20_000


class SqlClientError(PenstockError):
    """A statement was not carried out, or its answer did not come."""


class SqlServiceUnreachable(SqlClientError):
    """No service answers at the address, or what answers is none."""


class SqlServiceRefused(SqlClientError):
    """The service's own words and code; `entities` are what earlier statements answered."""

    def __init__(
        self, message: str, *, error_code: int, status: int = 0, document: Any = None
    ) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.status = status  # Of HTTP; 0: it came in the middle of an answer.
        told = document if isinstance(document, dict) else {}
        self.statement: str | None = told.get("statementText")
        self.entities: list[Any] = list(told.get("entities") or ())


def refusal(document: Any, status: int = 0) -> SqlServiceRefused:
    """The error that a document of the service tells."""
    told = document if isinstance(document, dict) else {}
    message = str(told.get("message") or f"the service answered {status}")
    code = told.get("error_code")
    return SqlServiceRefused(
        message[:_MESSAGE_CHARACTERS_MAX],
        error_code=code if isinstance(code, int) else status * 100,
        status=status,
        document=document,
    )
