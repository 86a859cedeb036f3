"""The engine: the catalog that the log of commands gives, and the queries that run by it.

A command is judged against the catalog, gets its topics, is logged, and acts; the next one is
judged after that. A service that starts replays the log, comes to the same catalog with the same
query ids, and starts the queries that are left.
"""

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from penstock.errors import PenstockError
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import Relation
from penstock.sql.commands.applying import COMMANDS, Command, Commands, StatementOutcome
from penstock.sql.formats.codec import SchemaPort
from penstock.sql.formats.serdes import topic_serdes
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language.parse import parse_one
from penstock.sql.language.place import SqlSyntaxError
from penstock.sql.language.statements import (
    Control,
    CreateAs,
    CreateSource,
    InsertFrom,
    SetProperty,
    SetVariable,
    Statement,
)
from penstock.sql.planning.planner import Planner
from penstock.sql.running.command_records import (
    TERMINATE_CLUSTER,
    CommandFenced,
    CommandRecord,
    command_id,
    terminate_record,
    terminated_topics,
)
from penstock.sql.running.ports import (
    CommandLog,
    CommandStatus,
    HostedQuery,
    LoggedCommand,
    QueryHealth,
    QueryHost,
    TopicPort,
)
from penstock.sql.running.scope import RequestScope
from penstock.sql.running.sink_topics import (
    check_partitions,
    check_replaced_plan,
    ensure_sink,
    ensure_source,
)

log = logging.getLogger("penstock.sql")

_TRIES: Final = 3  # Of a command, while other servers write to the log too.


class ClusterTerminated(PenstockError):
    """The service has been ended for good."""


class SqlEngine:
    """One service's; any thread may ask, commands go one after the other."""

    def __init__(
        self,
        *,
        command_log: CommandLog,
        topics: TopicPort,
        host: QueryHost,
        functions: Callable[[], FunctionTable],
        schemas: SchemaPort | None = None,
        defaults: Mapping[str, str] | None = None,  # Properties that the settings give.
        forget_topic: Callable[[str], None] = lambda _: None,  # Before a topic is deleted.
        server_id: str = "one",  # Which state on disk is ours.
    ) -> None:
        self._log = command_log
        self._topics = topics
        self._host = host
        self._functions = functions
        self._forget_topic = forget_topic
        self._server_id = server_id
        self.schemas = schemas
        self._lock = threading.RLock()
        self._queries: dict[str, HostedQuery] = {}
        self.catalog = Catalog(properties=dict(defaults or {}))
        self.statuses: dict[str, CommandStatus] = {}
        self.position = -1  # The offset of the last command that acted.
        self.is_open = False
        self.is_terminated = False
        self._left_queries: set[str] = set()  # Of a service that was ended, to be removed.
        self._left_topics: set[str] = set()
        self.runs_queries = False  # Whether it is this server that runs them.
        # How a query is that another server runs.
        self.elsewhere: Callable[[str], QueryHealth] = lambda _: QueryHealth(state="UNRESPONSIVE")

    @property
    def functions(self) -> FunctionTable:
        """All functions as they are now."""
        return self._functions()

    def open(self) -> None:
        """Replay the log."""
        with self._lock:
            self._take(self._log.read())
            self.is_open = True

    def run_queries(self) -> None:
        """Become the server that runs the queries; all of them start, or go on."""
        with self._lock:
            if self.is_terminated:
                self.runs_queries = True
                self._remove_left()
                return
            before = self._log.claim(self._server_id)
            if before not in (None, self._server_id):
                self._leave()
                self._host.drop_state(self._queries)  # Others have gone on; topics know how far.
            self.runs_queries = True
            self._remove_left()
            self._take(self._log.read())
            self._start_missing()

    def leave_queries(self) -> None:
        """Another server runs them from now on."""
        with self._lock:
            self._leave()

    def follow(self) -> None:
        """Take what other servers logged, and start what could not start before."""
        with self._lock:
            if self.is_terminated:
                return
            self._take(self._log.read())
            self._start_missing()

    def _leave(self) -> None:
        self.runs_queries = False
        for name in self._queries:
            self._host.pause(name)

    def _start_missing(self) -> None:
        if self.runs_queries:
            for hosted in list(self._queries.values()):
                if self._host.health(hosted.id) is None:
                    self._start(hosted)

    def check_running(self) -> None:
        """ClusterTerminated once the service has been ended."""
        if self.is_terminated:
            raise ClusterTerminated(
                "The cluster has been terminated. No new request will be accepted."
            )

    def terminate(self, patterns: Sequence[str]) -> CommandStatus:
        """End the service: its queries, what they left, topics of theirs, and the log."""
        with self._lock:
            self._take(self._log.enter())
            self.check_running()
            record = terminate_record(patterns)
            offset = self._log.append(record)
            self.position = offset
            self._end_all(patterns)
            return CommandStatus(id=record.id, message="Cluster terminated", offset=offset)

    def _end_all(self, patterns: Sequence[str]) -> None:
        """Whoever runs the queries removes what is left; the others only stop.

        A server that reads of it at its start begins anew: the end was of those before it.
        """
        self.is_terminated = self.is_open
        doomed = doomed_topics(self.catalog, patterns)
        for topic in doomed:
            self._forget_topic(topic)
        self._left_queries |= set(self.catalog.queries)
        self._left_topics |= set(doomed)
        self._queries = {}
        self.catalog = Catalog(properties=self.catalog.properties)
        if self.runs_queries:
            self._remove_left()

    def _remove_left(self) -> None:
        self._host.end(self._left_queries, forget=True)
        self._topics.delete(self._left_topics)
        self._left_queries, self._left_topics = set(), set()
        if self.is_terminated:
            self._log.delete()

    def execute(self, statement: Command, scope: RequestScope) -> CommandStatus:
        """Carry a command out; StatementRefused or CommandRefused leave all as it was."""
        with self._lock:
            for _ in range(_TRIES):
                try:
                    return self._execute(statement, scope)
                except CommandFenced:
                    continue  # Another server was faster: judge it anew after what that one did.
            return self._execute(statement, scope)

    def _execute(self, statement: Command, scope: RequestScope) -> CommandStatus:
        self.check_running()
        self._take(self._log.enter())
        self.check_running()
        outcome = self._applied(statement, scope.properties)
        query = None if outcome.started is None else outcome.started.note.id
        name = command_id(statement, query)
        if outcome.catalog == self.catalog and outcome.started is None:
            return CommandStatus(id=name, message=outcome.message)
        hosted = self._hosted(outcome, scope.properties)
        if hosted is not None:
            check_partitions(hosted.topology, self._topics)
            self._check_state_fits(hosted)
        self._prepare(statement, outcome)
        record = CommandRecord(
            id=name, statement=_settled(statement, outcome), properties=scope.properties
        )
        offset = self._log.append(record)
        if hosted is not None and hosted.id not in outcome.ended and not self.runs_queries:
            self._host.settle(hosted)  # Another server starts it, later than we answer.
        self._adopt(statement, outcome, hosted, offset)
        status = CommandStatus(
            id=name, message=_message(statement, outcome), query=query, offset=offset
        )
        self.statuses[name] = status
        self._act(statement, outcome, hosted, is_ours=True)
        return status

    def tried(self, catalog: Catalog, statement: Statement, scope: RequestScope) -> Catalog:
        """The catalog as it would be; StatementRefused says why it cannot. Nothing is done."""
        if not isinstance(statement, COMMANDS):
            return catalog
        outcome = self._judge().apply(scope.over(catalog), statement)
        if outcome.started is not None:
            self.planner(outcome.catalog).plan(outcome.started)
        return _kept(outcome, catalog, statement)

    def catch_up(self) -> None:
        """Take what other servers of the service logged."""
        with self._lock:
            self._take(self._log.enter())

    def planner(self, catalog: Catalog) -> Planner:
        """What makes plans of queries."""
        return Planner.of(catalog, self.functions, self.schemas)

    def hosted(self, query_id: str) -> HostedQuery | None:
        """A query with its topology."""
        return self._queries.get(query_id)

    def health(self, query_id: str) -> QueryHealth:
        """How a query is doing."""
        note = self.catalog.queries.get(query_id)
        if note is not None and note.is_paused:
            return QueryHealth(state="PAUSED")
        found = self._host.health(query_id)
        if found is None and not self.runs_queries and query_id in self._queries:
            return self.elsewhere(query_id)
        return found or QueryHealth(state="REBALANCING")

    def _judge(self) -> Commands:
        return Commands(self.functions, self.schemas)

    def _applied(self, statement: Command, properties: Mapping[str, str]) -> StatementOutcome:
        scope = RequestScope(properties=properties)
        outcome = self._judge().apply(scope.over(self.catalog), statement)
        return replace(outcome, catalog=_kept(outcome, self.catalog, statement))

    def _hosted(
        self, outcome: StatementOutcome, properties: Mapping[str, str]
    ) -> HostedQuery | None:
        if outcome.started is None:
            return None
        topology = self.planner(outcome.catalog).plan(outcome.started)
        return HostedQuery(query=outcome.started, topology=topology, properties=properties)

    def _check_state_fits(self, hosted: HostedQuery) -> None:
        """A query that takes the place of another goes on with its state, if that fits."""
        before = self._queries.get(hosted.id)
        if before is not None:
            check_replaced_plan(before.topology, hosted.topology, self._topics)

    def _prepare(self, statement: Command, outcome: StatementOutcome) -> None:
        """Topics first: a statement whose topic cannot be had is not logged."""
        if isinstance(statement, CreateSource):
            relation = outcome.catalog.relations[statement.name]
            ensure_source(relation, statement, self._topics)
            topic_serdes(relation, self.schemas)  # Registers its schemas, or refuses.
        elif isinstance(statement, CreateAs) and outcome.started is not None:
            first = outcome.started.logical.sources[0].relation
            ensure_sink(outcome.started.sink, first, self._topics)

    def _take(self, commands: Sequence[LoggedCommand]) -> None:
        for offset, command in commands:
            if offset > self.position:
                self._replay(offset, command)

    def _replay(self, offset: int, command: CommandRecord) -> None:
        """One command of the log; one that cannot be carried out any more is told and passed."""
        if command.statement == TERMINATE_CLUSTER:
            self.position = offset
            self._end_all(terminated_topics(command))
            return
        try:
            statement = parse_one(command.statement)
            if not isinstance(statement, COMMANDS):
                raise StatementRefused("it is no command")
            outcome = self._applied(statement, command.properties)
            hosted = self._hosted(outcome, command.properties)
        except (StatementRefused, SqlSyntaxError, PenstockError) as error:
            log.error("The command %s at offset %d cannot be replayed: %s",
                      command.id, offset, error)  # fmt: skip
            self.position = offset
            self.statuses[command.id] = CommandStatus(
                id=command.id, message=str(error), offset=offset, is_error=True
            )
            return
        self._adopt(statement, outcome, hosted, offset)
        self.statuses[command.id] = CommandStatus(
            id=command.id,
            message=_message(statement, outcome),
            query=None if hosted is None else hosted.id,
            offset=offset,
        )
        if self.is_open:
            self._act(statement, outcome, hosted, is_ours=False)

    def _adopt(
        self,
        statement: Command,
        outcome: StatementOutcome,
        hosted: HostedQuery | None,
        offset: int,
    ) -> None:
        self.catalog = outcome.catalog
        self.position = offset
        for ended in outcome.ended:
            self._queries.pop(ended, None)
        if hosted is not None:
            self._queries[hosted.id] = hosted

    def _act(
        self,
        statement: Command,
        outcome: StatementOutcome,
        hosted: HostedQuery | None,
        *,
        is_ours: bool,
    ) -> None:
        """What a command means for the queries and topics that are there."""
        if self.runs_queries:
            self._end(outcome, hosted)
        if outcome.deleted_topic is not None:
            self._forget_topic(outcome.deleted_topic)
            # A topic that a query writes to is deleted by who ends the query.
            if self.runs_queries if outcome.ended else is_ours:
                self._topics.delete([outcome.deleted_topic])
        if not self.runs_queries:
            return
        if isinstance(statement, Control) and statement.action != "TERMINATE":
            self._switch(statement)
        if hosted is not None:
            self._start(hosted)

    def _end(self, outcome: StatementOutcome, hosted: HostedQuery | None) -> None:
        replaced = {hosted.id} if hosted is not None else set()
        self._host.end(outcome.ended & replaced, forget=False)
        self._host.end(outcome.ended - replaced, forget=True)

    def _switch(self, statement: Control) -> None:
        chosen = list(self._queries) if statement.query is None else [statement.query]
        for name in chosen:
            if statement.action == "PAUSE":
                self._host.pause(name)
            elif name in self._queries:
                self._host.start(self._queries[name])

    def _start(self, hosted: HostedQuery) -> None:
        if not self.catalog.queries[hosted.id].is_paused:
            self._host.start(hosted)


def doomed_topics(catalog: Catalog, patterns: Sequence[str]) -> list[str]:
    """The topics that queries write to, of those that patterns match."""
    sinks = {note.sink or "" for note in catalog.queries.values()}
    written = {catalog.relations[name].topic for name in sinks if name in catalog.relations}
    chosen = [re.compile(pattern) for pattern in patterns]
    return sorted(topic for topic in written if any(one.fullmatch(topic) for one in chosen))


def _kept(outcome: StatementOutcome, before: Catalog, statement: Statement) -> Catalog:
    """The catalog without what only one request said."""
    if isinstance(statement, SetProperty | SetVariable):
        return outcome.catalog
    return replace(outcome.catalog, properties=before.properties, variables=before.variables)


def _settled(statement: Command, outcome: StatementOutcome) -> str:
    """The statement as it is logged: with the columns that a registry told."""
    if not isinstance(statement, CreateSource):
        return f"{statement};"
    relation = outcome.catalog.relations[statement.name]
    if len(relation.columns.all) == len(statement.columns):
        return f"{statement};"
    kind, elements = statement.kind, _elements(relation)
    try:
        written = parse_one(f"CREATE {kind} X ({elements}) WITH (KAFKA_TOPIC='x');")
    except SqlSyntaxError:  # A name that the language cannot write.
        return f"{statement};"
    assert isinstance(written, CreateSource)
    return f"{replace(statement, columns=written.columns)};"


def _elements(relation: Relation) -> str:
    texts = [str(column) for column in relation.columns.all]
    if relation.kind == "STREAM":
        return ", ".join(texts)
    return ", ".join(
        f"{text.removesuffix(' KEY')} PRIMARY KEY" if column.role == "KEY" else text
        for text, column in zip(texts, relation.columns.all, strict=True)
    )


def _message(statement: Command, outcome: StatementOutcome) -> str:
    if isinstance(statement, CreateAs | InsertFrom) and outcome.started is not None:
        return f"Created query with ID {outcome.started.note.id}"
    return outcome.message
