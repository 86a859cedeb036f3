"""POST /query and /query-stream: rows of push and pull queries, and topics that are printed."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from penstock.http.errors import HttpError
from penstock.http.handlers import BaseRoute, Request, Response, Route
from penstock.sql.asking.answering import WrongPlace
from penstock.sql.asking.questions import AnsweredPull, OpenQuestion, Questions
from penstock.sql.asking.row_reader import AnswerRow
from penstock.sql.language.queries import Select
from penstock.sql.language.statements import PrintTopic
from penstock.sql.service.media import DELIMITED, JSON, KSQL_JSON, media_of
from penstock.sql.service.printing import PrintedLines, TopicPrints
from penstock.sql.service.requests import (
    SERVER_ERROR,
    MalformedRequest,
    SqlRequest,
    json_body,
    sql_request,
    statement_of,
)
from penstock.sql.service.row_answers import (
    ChunkedArray,
    DelimitedLines,
    EndlessAnswer,
    PlainArray,
    RowFormat,
    RowPieces,
    whole_answer,
)


class QueryRoutes:
    """Handlers for one service."""

    def __init__(
        self,
        questions: Questions,
        prints: TopicPrints,
        threads: ThreadPoolExecutor,
    ) -> None:
        self._questions = questions
        self._prints = prints
        self._threads = threads

    def routes(self) -> list[BaseRoute]:
        """What is served here."""
        return [
            Route("/query", self._query, methods=["POST"]),
            Route("/query-stream", self._query_stream, methods=["POST"]),
            Route("/close-query", self._close, methods=["POST"]),
        ]

    async def _query(self, request: Request) -> Response:
        asked = sql_request(await json_body(request), text="ksql", properties="streamsProperties")
        form = ChunkedArray(media_of(request, KSQL_JSON))
        if (answered := self._at_once(asked)) is not None:
            return whole_answer(answered, form)
        statement = statement_of(asked)
        if isinstance(statement, PrintTopic):
            return await self._print(statement, asked)
        if not isinstance(statement, Select):
            raise WrongPlace("Statement type is not supported at /query: send it to /ksql.")
        return await self._rows(statement, asked, form)

    async def _query_stream(self, request: Request) -> Response:
        asked = sql_request(await json_body(request), text="sql", properties="properties")
        media = media_of(request, DELIMITED, JSON)
        form: RowFormat = DelimitedLines() if media == DELIMITED else PlainArray()
        if (answered := self._at_once(asked)) is not None:
            return whole_answer(answered, form)
        statement = statement_of(asked)
        if not isinstance(statement, Select):
            raise WrongPlace("Statement type is not supported at /query-stream: send it to /ksql.")
        return await self._rows(statement, asked, form)

    def _at_once(self, asked: SqlRequest) -> AnsweredPull | None:
        return self._questions.at_once(asked.text.strip(), asked.scope)

    async def _rows(self, select: Select, asked: SqlRequest, form: RowFormat) -> Response:
        loop = asyncio.get_running_loop()

        def begin() -> OpenQuestion:
            return self._questions.begin(select, asked.scope, asked.text.strip(), loop)

        question = await loop.run_in_executor(self._threads, begin)
        first = None if question.is_push else await _first(question)
        pieces = RowPieces(question, form, first)
        return EndlessAnswer(form.media, pieces.next, question.pipe.end)

    async def _close(self, request: Request) -> Response:
        query_id = (await json_body(request)).get("queryId")
        if not isinstance(query_id, str):
            raise MalformedRequest('"queryId" field must be given, as a string.')
        if not self._questions.close(query_id):
            raise MalformedRequest(f"No query with id {query_id}")
        return Response(status_code=200)

    async def _print(self, statement: PrintTopic, asked: SqlRequest) -> Response:
        loop = asyncio.get_running_loop()
        work = await loop.run_in_executor(self._threads, self._prints.open, statement, asked.scope)
        lines = PrintedLines(work)
        return EndlessAnswer("text/plain; charset=utf-8", lines.next, lines.close)


async def _first(question: OpenQuestion) -> list[AnswerRow] | None:
    """The first rows: whoever fails before them is answered with an error."""
    rows = await question.pipe.take()
    if rows is None and question.pipe.failure is not None:
        raise HttpError(question.pipe.failure, status=500, code=SERVER_ERROR)
    return rows
