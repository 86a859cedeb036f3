"""Rows as an answer without end: each format has a beginning, rows and an end."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from penstock.http.handlers import ClientDisconnect, Receive, Response, Scope, Send
from penstock.sql.answers.cells import cells_text
from penstock.sql.answers.schemas import schema_text
from penstock.sql.asking.questions import AnsweredPull, OpenQuestion
from penstock.sql.asking.row_reader import AnswerRow
from penstock.sql.service.media import DELIMITED, JSON, KSQL_JSON
from penstock.sql.service.requests import SERVER_ERROR

_STALLED_S: Final = 120.0


Question = OpenQuestion | AnsweredPull


class RowFormat(Protocol):
    """How a query and its rows are written."""

    @property
    def media(self) -> str: ...
    def head(self, question: Question) -> str: ...
    def rows(self, rows: Sequence[AnswerRow]) -> str: ...
    def end(self, question: Question) -> str: ...


class ChunkedArray:
    """/query: one JSON array of a header, rows, and a last word."""

    def __init__(self, media: str = KSQL_JSON) -> None:
        self.media = media

    def head(self, question: Question) -> str:
        """Which query, and what its columns are."""
        header = {"queryId": question.id, "schema": schema_text(question.columns)}
        return "[" + json.dumps({"header": header}, ensure_ascii=False)

    def rows(self, rows: Sequence[AnswerRow]) -> str:
        """Each on a line."""
        return "".join(f',\n{{"row":{self._row(row)}}}' for row in rows)

    def _row(self, row: AnswerRow) -> str:
        gone = ',"tombstone":true' if row.is_tombstone else ""
        return f'{{"columns":{cells_text(row.values)}{gone}}}'

    def end(self, question: Question) -> str:
        """Why there are no more."""
        if question.failure is not None:
            told = {
                "errorMessage": {
                    "@type": "generic_error",
                    "error_code": SERVER_ERROR,
                    "message": question.failure,
                }
            }
            return f",\n{json.dumps(told, ensure_ascii=False)}]"
        if question.is_limited:
            return ',\n{"finalMessage":"Limit Reached"}]'
        return "]" if not question.is_push else ',\n{"finalMessage":"Query Completed"}]'


def _metadata(question: Question) -> str:
    return json.dumps(
        {
            "queryId": question.id if question.is_push else None,
            "columnNames": [column.name for column in question.columns],
            "columnTypes": [str(column.type) for column in question.columns],
        },
        ensure_ascii=False,
    )


def _error(question: Question) -> str:
    told = {
        "@type": "generic_error",
        "status": "error",
        "error_code": SERVER_ERROR,
        "message": question.failure,
    }
    return json.dumps(told, ensure_ascii=False)


class DelimitedLines:
    """/query-stream: a line for the columns, a line for each row."""

    media = DELIMITED

    def head(self, question: Question) -> str:
        """The columns."""
        return _metadata(question) + "\n"

    def rows(self, rows: Sequence[AnswerRow]) -> str:
        """Arrays."""
        return "".join(f"{cells_text(row.values)}\n" for row in rows)

    def end(self, question: Question) -> str:
        """An error, if there was one."""
        return "" if question.failure is None else _error(question) + "\n"


class PlainArray:
    """/query-stream as plain JSON: one array of the columns and the rows."""

    media = JSON

    def head(self, question: Question) -> str:
        """The columns."""
        return "[" + _metadata(question)

    def rows(self, rows: Sequence[AnswerRow]) -> str:
        """Arrays."""
        return "".join(f",\n{cells_text(row.values)}" for row in rows)

    def end(self, question: Question) -> str:
        """An error, if there was one."""
        return "]" if question.failure is None else f",\n{_error(question)}]"


def whole_answer(answered: AnsweredPull, form: RowFormat) -> Response:
    """An answer in one piece."""
    content = form.head(answered) + form.rows(answered.rows) + form.end(answered)
    return Response(content, media_type=form.media, headers={"cache-control": "no-cache"})


class EndlessAnswer(Response):
    """An answer in pieces that ends when it is over, its client goes, or the service stops."""

    def __init__(
        self,
        media: str,
        pieces: Callable[[], Awaitable[bytes | None]],
        gone: Callable[[], object],
    ) -> None:
        super().__init__(media_type=media)
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-cache"
        self._pieces = pieces
        self._gone = gone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watching = asyncio.create_task(self._watch(receive), name="query watch")
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(start)
            while (piece := await self._pieces()) is not None:
                if piece:
                    await self._send(send, piece)
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._gone()
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    async def _send(self, send: Send, piece: bytes) -> None:
        """A client that takes nothing keeps its connection for a while, and no longer."""
        try:
            async with asyncio.timeout(_STALLED_S):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except TimeoutError:
            raise ClientDisconnect from None

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone()


class RowPieces:
    """The pieces of an answer: the head, then what the pipe has, then the end."""

    def __init__(
        self, question: OpenQuestion, form: RowFormat, first: Sequence[AnswerRow] | None
    ) -> None:
        self._question = question
        self._form = form
        self._waiting = form.head(question) + ("" if first is None else form.rows(first))
        self._has_ended = False

    async def next(self) -> bytes | None:
        """The next piece; None: that was all."""
        if self._waiting:
            piece, self._waiting = self._waiting, ""
            return piece.encode()
        if self._has_ended:
            return None
        rows = await self._question.pipe.take()
        if rows is None:
            self._has_ended = True
            return self._form.end(self._question).encode()
        return self._form.rows(rows).encode()
