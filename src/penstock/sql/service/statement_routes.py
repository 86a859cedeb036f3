"""POST /ksql: statements one after the other, each with its answer.

All of them are tried on a copy of the catalog first, so a script with a mistake does nothing.
"""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from penstock.http.bodies import as_json
from penstock.http.errors import HttpError
from penstock.http.handlers import BaseRoute, Request, Response, Route
from penstock.sql.answers.entities import current_status
from penstock.sql.answers.schemas import Document
from penstock.sql.asking.answering import StatementAnswers
from penstock.sql.language.parse import parse
from penstock.sql.language.scripts import statement_count, statement_texts
from penstock.sql.language.statements import Statement
from penstock.sql.language.variables import substitute
from penstock.sql.running.command_records import TERMINATE_CLUSTER
from penstock.sql.running.scope import RequestScope
from penstock.sql.service.errors import translate
from penstock.sql.service.media import KSQL_JSON, media_of
from penstock.sql.service.requests import (
    NOT_READY,
    MalformedRequest,
    SqlRequest,
    json_body,
    sql_request,
)

_STATEMENTS_MAX: Final = 5_000


class _StatementFailed(Exception):
    """A statement that could not be carried out, and the answers of those before it."""

    def __init__(self, error: HttpError, text: str, answers: list[Document]) -> None:
        super().__init__(str(error))
        self.error, self.text, self.answers = error, text, answers


class StatementRoutes:
    """Handlers for one service."""

    def __init__(self, answers: StatementAnswers, threads: ThreadPoolExecutor) -> None:
        self._answers = answers
        self._threads = threads

    def routes(self) -> list[BaseRoute]:
        """What is served here."""
        return [
            Route("/ksql", self._ksql, methods=["POST"]),
            Route("/ksql/terminate", self._terminate, methods=["POST"]),
        ]

    async def _terminate(self, request: Request) -> Response:
        patterns = _patterns((await json_body(request)).get("deleteTopicList"))
        loop, media = asyncio.get_running_loop(), media_of(request, KSQL_JSON)
        engine = self._answers.engine
        status = await loop.run_in_executor(self._threads, engine.terminate, patterns)
        return as_json([current_status(TERMINATE_CLUSTER, status)], media=media)

    async def _ksql(self, request: Request) -> Response:
        asked = sql_request(await json_body(request), text="ksql", properties="streamsProperties")
        loop, media = asyncio.get_running_loop(), media_of(request, KSQL_JSON)
        try:
            made = await loop.run_in_executor(self._threads, self._run, asked)
        except _StatementFailed as failed:
            return as_json(_failure(failed), media=media, status=failed.error.answer_status)
        return as_json(made, media=media)

    def _run(self, asked: SqlRequest) -> list[Document]:
        self._answers.engine.check_running()
        _check_count(asked.text)
        self._wait_for(asked.sequence_number)
        self._check(asked)
        answers: list[Document] = []
        scope = asked.scope
        for text in statement_texts(asked.text):
            for statement in _parsed(text, scope, answers):
                try:
                    answered = self._answers.answer(statement, text.strip(), scope)
                except Exception as error:
                    raise _failed(error, text, answers) from error
                scope = answered.scope
                if answered.document is not None:
                    answers.append(answered.document)
        return answers

    def _check(self, asked: SqlRequest) -> None:
        catalog, scope = self._answers.engine.catalog, asked.scope
        for text in statement_texts(asked.text):
            for statement in _parsed(text, scope, []):
                try:
                    catalog, scope = self._answers.check(catalog, statement, scope)
                except Exception as error:
                    raise _failed(error, text, []) from error

    def _wait_for(self, sequence_number: int | None) -> None:
        engine = self._answers.engine
        if sequence_number is None or sequence_number <= engine.position:
            return
        engine.catch_up()
        if sequence_number > engine.position:
            raise HttpError(
                "Timed out while waiting for a previous command to execute. command sequence "
                f"number: {sequence_number}",
                status=503,
                code=NOT_READY,
            )


def _patterns(found: Any) -> list[str]:
    """Names or regular expressions of topics."""
    listed = [] if found is None else found
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise MalformedRequest("deleteTopicList must be an array of strings.")
    for one in listed:
        try:
            re.compile(one)
        except re.error as error:
            raise MalformedRequest(f"Invalid pattern: {one}: {error}") from None
    return listed


def _check_count(script: str) -> None:
    if statement_count(script) > _STATEMENTS_MAX + 1:
        raise HttpError(
            f"A request has at most {_STATEMENTS_MAX} statements.", status=400, code=40000
        )


def _parsed(text: str, scope: RequestScope, answers: list[Document]) -> list[Statement]:
    try:
        return parse(substitute(text, scope.variables))
    except Exception as error:
        raise _failed(error, text, answers) from error


def _failed(error: Exception, text: str, answers: list[Document]) -> Exception:
    if isinstance(error, HttpError):
        return error
    known = translate(error)
    return error if known is None else _StatementFailed(known, text.strip(), answers)


def _failure(failed: _StatementFailed) -> dict[str, Any]:
    return {
        "@type": "statement_error",
        "error_code": failed.error.code,
        "message": str(failed),
        "statementText": failed.text,
        "entities": failed.answers,
    }
