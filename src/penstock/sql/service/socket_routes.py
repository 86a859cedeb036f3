"""/ws/query: a query over a WebSocket, as ksqlDB's own shell asks it.

The request stands in the address (`?request={"ksql": ...}`). The first message has the columns,
each further one a row; PRINT sends lines. The last word is the reason with which the socket closes.
"""

import asyncio
import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from penstock.http.handlers import BaseRoute, WebSocket, WebSocketDisconnect, WebSocketRoute
from penstock.sql.answers.cells import cells_text
from penstock.sql.answers.schemas import column_documents
from penstock.sql.asking.answering import WrongPlace
from penstock.sql.asking.questions import OpenQuestion, Questions
from penstock.sql.asking.row_reader import AnswerRow
from penstock.sql.language.queries import Select
from penstock.sql.language.statements import PrintTopic
from penstock.sql.service.errors import translate
from penstock.sql.service.printing import PrintedLines, TopicPrints
from penstock.sql.service.requests import (
    SqlRequest,
    json_object,
    sql_request,
    statement_of,
)

_DONE: Final = 1000
_REFUSED: Final = 1003
_FAILED: Final = 1011
_LATER: Final = 1013
_CODES: Final = {400: _REFUSED, 429: _LATER, 503: _LATER}
_REASON_BYTES_MAX: Final = 120  # A control frame has 125, with the code.
_STALLED_S: Final = 120.0


class SocketRoutes:
    """Handlers for one service."""

    def __init__(
        self, questions: Questions, prints: TopicPrints, threads: ThreadPoolExecutor
    ) -> None:
        self._questions = questions
        self._prints = prints
        self._threads = threads

    def routes(self) -> list[BaseRoute]:
        """What is served here."""
        return [WebSocketRoute("/ws/query", self._query)]

    async def _query(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            await self._answer(socket)
        except (WebSocketDisconnect, RuntimeError, TimeoutError):
            pass  # The client has gone, or takes nothing.
        except Exception as error:
            refused = translate(error)
            if refused is None:
                await _close(socket, _FAILED, "Internal Server Error")
                raise
            await _close(socket, _CODES.get(refused.answer_status, _FAILED), str(refused))

    async def _answer(self, socket: WebSocket) -> None:
        body = socket.query_params.get("request", "").encode()
        asked = sql_request(json_object(body), text="ksql", properties="streamsProperties")
        statement = statement_of(asked)
        if isinstance(statement, PrintTopic):
            await self._print(socket, statement, asked)
        elif isinstance(statement, Select):
            await self._rows(socket, statement, asked)
        else:
            raise WrongPlace("Statement type is not supported at /ws/query: send it to /ksql.")

    async def _rows(self, socket: WebSocket, select: Select, asked: SqlRequest) -> None:
        loop = asyncio.get_running_loop()

        def begin() -> OpenQuestion:
            return self._questions.begin(select, asked.scope, asked.text.strip(), loop)

        question = await loop.run_in_executor(self._threads, begin)
        watching = asyncio.create_task(_until_closed(socket, question), name="socket reader")
        try:
            await _send(socket, json.dumps(column_documents(question.columns)))
            while (rows := await question.pipe.take()) is not None:
                for row in rows:
                    await _send(socket, _row(row))
            failure = question.pipe.failure
            await _close(socket, _DONE if failure is None else _FAILED, failure or "done")
        finally:
            question.pipe.end()
            watching.cancel()

    async def _print(self, socket: WebSocket, statement: PrintTopic, asked: SqlRequest) -> None:
        loop = asyncio.get_running_loop()
        work = await loop.run_in_executor(self._threads, self._prints.open, statement, asked.scope)
        lines = PrintedLines(work)
        watching = asyncio.create_task(_until_left(socket, lines), name="socket reader")
        try:
            while (piece := await lines.next()) is not None:
                for line in piece.decode().splitlines():
                    await _send(socket, line)
            await _close(socket, _DONE, "done")
        finally:
            await lines.leave()
            watching.cancel()


def _row(row: AnswerRow) -> str:
    gone = ',"tombstone":true' if row.is_tombstone else ""
    return f'{{"row":{{"columns":{cells_text(row.values)}{gone}}}}}'


async def _send(socket: WebSocket, text: str) -> None:
    """A client that takes nothing keeps its connection for a while, and no longer."""
    async with asyncio.timeout(_STALLED_S):
        await socket.send_text(text)


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    short = reason.encode()[:_REASON_BYTES_MAX].decode("utf-8", "ignore")
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        await socket.close(code, short)


async def _until_closed(socket: WebSocket, question: OpenQuestion) -> None:
    """Whatever the client says, only its leaving counts."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await socket.receive_text()
    question.pipe.end()


async def _until_left(socket: WebSocket, lines: PrintedLines) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await socket.receive_text()
    lines.close()
