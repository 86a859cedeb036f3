"""Errors become answers here and nowhere else: each a document in the form of its service.

What a handler raises on purpose is an `HttpError`, or an error that its service can translate into
one. Anything else is a defect: it is logged with its trace, and the client learns only that.
"""

import logging
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from penstock.http.bodies import SERVED, as_json
from penstock.http.errors import HttpError
from penstock.http.negotiation import negotiated

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from penstock.http.service import Served

_log = logging.getLogger(__name__)

Document = Callable[[HttpError], dict[str, Any]]
Translate = Callable[[Exception], HttpError | None]


class ErrorAnswers:
    """Answers for the handlers that raise."""

    def __init__(self, app: "ASGIApp", *, document: Document, translate: Translate) -> None:
        self._app = app
        self._document = document
        self._translate = translate

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def watched(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            has_begun = has_begun or message["type"] == "http.response.start"
            await send(message)

        try:
            # Starlette raises for unknown paths and methods where there is an app, else it answers.
            await self._app({**scope, "app": self}, receive, watched)
        except ClientDisconnect:
            return  # Nobody is there to be answered.
        except Exception as error:
            if has_begun:
                raise  # The server ends the connection, which is all that can be said by now.
            await self._answer(scope, receive, send, self._known(error, scope))

    async def _answer(
        self, scope: "Scope", receive: "Receive", send: "Send", error: HttpError
    ) -> None:
        served: Served = scope[SERVED]
        accept = Request(scope).headers.get("accept")
        media = negotiated(accept, served.offered) or served.offered[0]
        response = as_json(
            self._document(error), media=media, status=error.answer_status, headers=error.headers
        )
        await response(scope, receive, send)

    def _known(self, error: Exception, scope: "Scope") -> HttpError:
        if isinstance(error, HttpError):
            return error
        if isinstance(error, HTTPException):
            return HttpError(
                f"HTTP {error.status_code} {error.detail}",
                status=error.status_code,
                headers=error.headers,
            )
        found = self._translate(error)
        if found is None:
            _log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            return HttpError("Internal Server Error")
        return found
