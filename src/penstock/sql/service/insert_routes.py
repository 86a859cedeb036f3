"""POST /inserts-stream: rows as lines of JSON, stored as they come, each acknowledged."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from penstock.errors import PenstockError
from penstock.http.handlers import BaseRoute, Receive, Request, Response, Route, Scope, Send
from penstock.sql.analysis.inserting import RowValues
from penstock.sql.asking.answering import StatementAnswers
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import Relation, RelationColumn
from penstock.sql.formats.codec import FormatMisfit
from penstock.sql.formats.json_format import json_value
from penstock.sql.service.media import DELIMITED, media_of
from penstock.sql.service.requests import BAD_REQUEST, SERVER_ERROR, MalformedRequest, json_object
from penstock.sql.types.conversions import converter
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import STRING, TEMPORAL

_LINE_BYTES_MAX: Final = 1 << 20


class InsertRoutes:
    """Handlers for one service."""

    def __init__(self, answers: StatementAnswers, threads: ThreadPoolExecutor) -> None:
        self._answers = answers
        self._threads = threads

    def routes(self) -> list[BaseRoute]:
        """What is served here."""
        return [Route("/inserts-stream", self._insert, methods=["POST"])]

    async def _insert(self, request: Request) -> Response:
        media = media_of(request, DELIMITED)
        lines = _lines(request)
        try:
            head = json_object(await anext(lines))
        except StopAsyncIteration:
            raise MalformedRequest("The body is empty: its first line names the target.") from None
        relation = self._target(head)
        return _LinesAsTheyCome(self._acknowledged(lines, relation), media)

    def _target(self, head: Mapping[str, Any]) -> Relation:
        name = head.get("target")
        if not isinstance(name, str):
            raise MalformedRequest('"target" field must be given, as a string.')
        plain = _name(name)
        found = self._answers.engine.catalog.relations.get(plain)
        if found is None or found.kind != "STREAM":
            raise MalformedRequest(f"Cannot insert values into an unknown stream: {plain}")
        if found.is_read_only or found.key_window is not None:
            raise MalformedRequest(
                f"Cannot insert values into {plain}: it is read-only or windowed."
            )
        return found

    async def _acknowledged(
        self, lines: AsyncIterator[bytes], relation: Relation
    ) -> AsyncIterator[bytes]:
        """A line for each row; the first that cannot be stored ends it."""
        sequence = 0
        loop = asyncio.get_running_loop()
        async for line in lines:
            try:
                row = row_of(json_object(line), relation)
                await loop.run_in_executor(self._threads, self._answers.insert, row)
            except (MalformedRequest, StatementRefused) as error:
                yield _error(sequence, BAD_REQUEST, str(error))
                return
            except PenstockError as error:
                yield _error(sequence, SERVER_ERROR, str(error))
                return
            yield json.dumps({"status": "ok", "seq": sequence}).encode() + b"\n"
            sequence += 1


class _LinesAsTheyCome(Response):
    """An answer to a body that is still coming: nobody else may take pieces of that body."""

    def __init__(self, lines: AsyncIterator[bytes], media: str) -> None:
        super().__init__(media_type=media)
        del self.headers["content-length"]
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        async for line in self._lines:
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _lines(request: Request) -> AsyncIterator[bytes]:
    """The lines of a body as they come, each within a bound."""
    waiting = b""
    async for piece in request.stream():
        *whole, waiting = (waiting + piece).split(b"\n")
        if len(waiting) > _LINE_BYTES_MAX:
            raise MalformedRequest(f"A line is longer than {_LINE_BYTES_MAX} bytes.")
        for line in whole:
            if line.strip():
                yield line
    if waiting.strip():
        yield waiting


def row_of(document: Mapping[str, Any], relation: Relation) -> RowValues:
    """The values of a row by column; what is not said is NULL."""
    given = {_name(name): value for name, value in document.items()}
    known = {c.name: c for c in (*relation.columns.keys, *relation.columns.values)}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise MalformedRequest(f"The stream {relation.name} has no column {unknown[0]}.")
    values = {name: _value(given[name], known[name]) for name in given}
    return RowValues(relation, values, None)


def _value(found: Any, column: RelationColumn) -> Any:
    try:
        if column.type in TEMPORAL and isinstance(found, str):
            convert = converter(STRING, column.type)
            return found if convert is None else convert(found)
        return json_value(found, column.type, column.name)
    except (FormatMisfit, RowFailure) as error:
        raise MalformedRequest(str(error)) from None


def _name(text: str) -> str:
    """Names are in upper case unless they stand in back quotes."""
    if len(text) > 1 and text[0] == text[-1] == "`":
        return text[1:-1]
    return text.upper()


def _error(sequence: int, code: int, message: str) -> bytes:
    told = {"status": "error", "seq": sequence, "error_code": code, "message": message}
    return json.dumps(told, ensure_ascii=False).encode() + b"\n"
