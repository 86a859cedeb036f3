"""Push and pull queries under way: each a thread that makes rows and a pipe that carries them.

A push query that needs one record at a time, also one that follows a table, reads the topic itself.
One with joins or groups runs on Spark into a topic of its own, and that is read (`transient.py`).
"""

import asyncio
import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.client.operations.offsets import OffsetSpec
from penstock.errors import PenstockError
from penstock.sql.analysis.logical import LogicalQuery
from penstock.sql.analysis.pulling import analyse_pull
from penstock.sql.analysis.select import analyse_select
from penstock.sql.asking.pull import Puller
from penstock.sql.asking.ready_pulls import ReadyPulls
from penstock.sql.asking.records import TopicRecord, TopicTail, edges
from penstock.sql.asking.row_pipe import PipeClosed, RowPipe
from penstock.sql.asking.row_reader import AnswerRow, RowReader, is_row_by_row
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import RelationColumn
from penstock.sql.language.queries import Select
from penstock.sql.running.engine import SqlEngine
from penstock.sql.running.scope import RequestScope

log = logging.getLogger("penstock.sql")
processing_log = logging.getLogger("penstock.sql.processing")

POLL_S: Final = 0.2
RESETS: Final = ("ksql.streams.auto.offset.reset", "auto.offset.reset")
_CHUNK: Final = 500
_PULL_THREADS: Final = 16

MakeRows = Callable[[TopicRecord], list[AnswerRow]]


class TooManyQueries(PenstockError):
    """As many push queries run as are allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransientRows:
    """What a query on Spark writes, to be read like any topic."""

    topic: str
    rows: MakeRows
    close: Callable[[], None]


# Starts a query on Spark that only one client wants: the query, its id and its properties.
StartTransient = Callable[[LogicalQuery, str, Mapping[str, str]], TransientRows]


@dataclass(slots=True, kw_only=True)
class OpenQuestion:
    """A query whose rows are on their way."""

    id: str
    text: str
    columns: tuple[RelationColumn, ...]
    pipe: RowPipe[AnswerRow]
    is_push: bool
    limit: int | None = None
    is_limited: bool = False  # It ended because its limit was reached.
    _work: Callable[["OpenQuestion"], None] | None = field(default=None, repr=False)

    @property
    def failure(self) -> str | None:
        """Why it ended, where that was not its end."""
        return self.pipe.failure


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredPull:
    """A pull query whose rows are all here."""

    id: str
    columns: tuple[RelationColumn, ...]
    rows: Sequence[AnswerRow]
    is_push: bool = False
    is_limited: bool = False
    failure: str | None = None


class Questions:
    """The queries of a service that somebody waits for."""

    def __init__(
        self,
        engine: SqlEngine,
        client: Mapping[str, str],
        puller: Puller,
        *,
        pushes_max: int,
        slow_s: float,
        start_transient: StartTransient,
    ) -> None:
        self._engine = engine
        self._client = client
        self._puller = puller
        self._ready = ReadyPulls(puller)
        self._pushes_max = pushes_max
        self._slow_s = slow_s
        self._start_transient = start_transient
        self._lock = threading.Lock()
        self._open: dict[str, OpenQuestion] = {}
        # Threads that stay: each keeps a connection to every table's file.
        self._pulls = ThreadPoolExecutor(_PULL_THREADS, thread_name_prefix="sql-pull")

    @property
    def pushes(self) -> list[OpenQuestion]:
        """The push queries that run now."""
        with self._lock:
            return [one for one in self._open.values() if one.is_push]

    def begin(
        self, select: Select, scope: RequestScope, text: str, loop: asyncio.AbstractEventLoop
    ) -> OpenQuestion:
        """Understand a query and start it; StatementRefused says why not. May take a moment."""
        self._engine.check_running()
        pipe: RowPipe[AnswerRow] = RowPipe(loop, slow_s=self._slow_s)
        if select.emit is None:
            question = self._pull(select, scope, text, pipe)
        else:
            question = self._push(select, scope, text, pipe)
        self._enter(question)
        if question.is_push:
            name = f"query {question.id}"
            threading.Thread(target=self._run, args=(question,), name=name, daemon=True).start()
        else:
            self._pulls.submit(self._run, question)
        return question

    def at_once(self, text: str, scope: RequestScope) -> AnsweredPull | None:
        """The answer to a statement that was asked before, of another key; None: begin it."""
        self._engine.check_running()
        found = self._ready.answer(text, scope, self._engine.catalog)
        if found is None:
            return None
        return AnsweredPull(id=_new_id("query"), columns=found[0], rows=found[1])

    def close(self, query_id: str) -> bool:
        """End a query; False: there is none of that id."""
        with self._lock:
            found = self._open.get(query_id)
        if found is None:
            return False
        found.pipe.end()
        return True

    def close_all(self) -> None:
        """End all."""
        with self._lock:
            everyone = list(self._open.values())
        for one in everyone:
            one.pipe.end()

    def stop(self) -> None:
        """End all, and take no more."""
        self.close_all()
        self._pulls.shutdown(wait=False, cancel_futures=True)

    def _pull(
        self, select: Select, scope: RequestScope, text: str, pipe: RowPipe[AnswerRow]
    ) -> OpenQuestion:
        whole = self._engine.catalog
        catalog = scope.over(whole)
        query = analyse_pull(select, catalog, self._engine.functions)
        planner = self._engine.planner(catalog)
        columns = result_columns(query.logical)
        self._ready.learn(text, scope, whole, query, planner, columns)

        def work(question: OpenQuestion) -> None:
            for chunk in _chunks(self._puller.rows(query, planner)):
                question.pipe.put(chunk)

        return OpenQuestion(
            id=_new_id("query"),
            text=text,
            columns=columns,
            pipe=pipe,
            is_push=False,
            _work=work,
        )

    def _push(
        self, select: Select, scope: RequestScope, text: str, pipe: RowPipe[AnswerRow]
    ) -> OpenQuestion:
        self._check_room()
        catalog = scope.over(self._engine.catalog)
        logical = analyse_select(select, catalog, self._engine.functions)
        query_id = _new_id("transient_" + logical.sources[0].relation.name)
        if is_row_by_row(logical):
            if logical.emit == "FINAL":
                raise StatementRefused("EMIT FINAL is only supported for windowed aggregations.",
                                       place=select.at)  # fmt: skip
            work = self._reading(logical, scope)
        else:
            work = self._on_spark(logical, query_id, scope)
        return OpenQuestion(
            id=query_id,
            text=text,
            columns=result_columns(logical),
            pipe=pipe,
            is_push=True,
            limit=logical.limit,
            _work=work,
        )

    def _reading(
        self, logical: LogicalQuery, scope: RequestScope
    ) -> Callable[[OpenQuestion], None]:
        planner = self._engine.planner(scope.over(self._engine.catalog))
        reader = RowReader(logical, planner, processing_log.warning)
        topic = logical.sources[0].relation.topic
        # Before the client is answered: what it writes then must come.
        begins = edges(self._client, topic, start_of(scope.properties))

        def work(question: OpenQuestion) -> None:
            self._follow(question, topic, begins, reader.rows)

        return work

    def _on_spark(
        self, logical: LogicalQuery, query_id: str, scope: RequestScope
    ) -> Callable[[OpenQuestion], None]:
        transient = self._start_transient(logical, query_id, scope.properties)

        def work(question: OpenQuestion) -> None:
            try:
                begins = edges(self._client, transient.topic, OffsetSpec.EARLIEST)
                self._follow(question, transient.topic, begins, transient.rows)
            finally:
                transient.close()

        return work

    def _follow(
        self, question: OpenQuestion, topic: str, begins: Mapping[int, int], rows: MakeRows
    ) -> None:
        if question.limit == 0:
            question.is_limited = True
            return
        tail = TopicTail(self._client, topic, begins)
        try:
            sent = 0
            while not question.pipe.is_closed:
                made = [row for record in tail.poll(POLL_S) for row in rows(record)]
                if question.limit is not None and sent + len(made) >= question.limit:
                    question.is_limited = True
                    question.pipe.put(made[: question.limit - sent])
                    return
                sent += len(made)
                if made:
                    question.pipe.put(made)
        finally:
            tail.close()

    def _run(self, question: OpenQuestion) -> None:
        assert question._work is not None
        try:
            question._work(question)
            question.pipe.end()
        except PipeClosed:
            pass
        except PenstockError as error:
            question.pipe.end(str(error))
        except Exception:
            log.exception("The query %s failed", question.id)
            question.pipe.end("Internal Server Error")
        finally:
            with self._lock:
                self._open.pop(question.id, None)

    def _check_room(self) -> None:
        if len(self.pushes) >= self._pushes_max:
            raise TooManyQueries(
                f"As many push queries run as are allowed ({self._pushes_max}): end one, or set "
                "ksql.max.push.queries higher."
            )

    def _enter(self, question: OpenQuestion) -> None:
        with self._lock:
            self._open[question.id] = question


def start_of(properties: Mapping[str, str]) -> OffsetSpec:
    """Where who reads a topic begins: `auto.offset.reset`, by default at its end."""
    said = next((properties[name] for name in RESETS if name in properties), "latest")
    return OffsetSpec.EARLIEST if said == "earliest" else OffsetSpec.LATEST


def result_columns(logical: LogicalQuery) -> tuple[RelationColumn, ...]:
    """The columns of a result, those of a key with their role."""
    return tuple(
        RelationColumn(one.name, one.type, "VALUE" if one.key_part is None else "KEY")
        for one in logical.outputs
    )


def _new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.randbelow(1 << 62)}"


def _chunks(rows: Iterator[Any]) -> Iterator[Sequence[Any]]:
    chunk: list[Any] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) >= _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
