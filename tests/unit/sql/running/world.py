"""A log, topics and a host in memory, for an engine without brokers and Spark."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.sql_functions import sql_functions

from penstock.sql.running.command_records import CommandFenced, CommandRecord, read_command
from penstock.sql.running.engine import SqlEngine
from penstock.sql.running.ports import (
    HostedQuery,
    LoggedCommand,
    QueryHealth,
    TopicReaders,
    TopicShape,
)
from penstock.sql.testing.memory_schemas import MemorySchemas


@dataclass
class MemoryLog:
    """Records as they would lie in the topic, and who last became the writer."""

    records: list[tuple[bytes, bytes]] = field(default_factory=list)
    writers: list["MemoryLog | None"] = field(default_factory=list, repr=False)
    runners: list[str] = field(default_factory=list)
    next: int = 0
    fences: int = 0  # How many appends are refused from now on.

    def beside(self) -> "MemoryLog":
        """The same log, as another server has it."""
        return MemoryLog(records=self.records, writers=self.writers, runners=self.runners)

    def enter(self) -> Sequence[LoggedCommand]:
        self.writers[:] = [self]
        return self.read()

    def read(self) -> Sequence[LoggedCommand]:
        found = []
        for offset in range(self.next, len(self.records)):
            command = read_command(*self.records[offset])
            if command is not None:
                found.append(LoggedCommand(offset, command))
        self.next = len(self.records)
        return found

    def claim(self, server_id: str) -> str | None:
        self.writers[:] = [self]
        before = self.runners[-1] if self.runners else None
        self.runners.append(server_id)
        return before

    def append(self, command: CommandRecord) -> int:
        if self.fences or self.writers[-1] is not self:
            self.fences = max(0, self.fences - 1)
            raise CommandFenced("fenced")
        self.records.append(command.encoded())
        return len(self.records) - 1

    def delete(self) -> None:
        self.records.clear()
        self.next = 0


@dataclass
class MemoryTopics:
    """Topics by name."""

    known: dict[str, TopicShape] = field(default_factory=dict)
    configs: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def find(self, name: str) -> TopicShape | None:
        return self.known.get(name)

    def all(self) -> Sequence[TopicShape]:
        return [self.known[name] for name in sorted(self.known)]

    def readers(self) -> Mapping[str, TopicReaders]:
        return {}

    def create(
        self, name: str, *, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        self.known[name] = TopicShape(name=name, replicas=(max(1, replicas),) * partitions)
        self.configs[name] = configs

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self.known.pop(name, None)


@dataclass
class MemoryHost:
    """Notes what it is told to run."""

    running: dict[str, HostedQuery] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    settled: list[str] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)

    def settle(self, hosted: HostedQuery) -> None:
        self.settled.append(hosted.id)

    def drop_state(self, query_ids: Iterable[str]) -> None:
        self.dropped.update(query_ids)

    def start(self, hosted: HostedQuery) -> None:
        self.running[hosted.id] = hosted

    def pause(self, query_id: str) -> None:
        self.running.pop(query_id, None)

    def end(self, query_ids: Iterable[str], *, forget: bool) -> None:
        for query_id in query_ids:
            self.running.pop(query_id, None)
            if forget:
                self.forgotten.add(query_id)

    def health(self, query_id: str) -> QueryHealth | None:
        return QueryHealth(state="RUNNING") if query_id in self.running else None


@dataclass
class World:
    """One service's surroundings; `engine` starts it anew."""

    log: MemoryLog = field(default_factory=MemoryLog)
    topics: MemoryTopics = field(default_factory=MemoryTopics)
    host: MemoryHost = field(default_factory=MemoryHost)
    schemas: MemorySchemas = field(default_factory=MemorySchemas)

    def engine(self) -> SqlEngine:
        self.log.next = 0
        self.host = MemoryHost()
        engine = self._opened(self.log, self.host, "one")
        engine.run_queries()
        return engine

    def second(self) -> tuple[SqlEngine, MemoryHost]:
        """Another server of the service, which runs no queries."""
        host = MemoryHost()
        return self._opened(self.log.beside(), host, "two"), host

    def _opened(self, log: MemoryLog, host: MemoryHost, server_id: str) -> SqlEngine:
        engine = SqlEngine(
            command_log=log,
            topics=self.topics,
            host=host,
            functions=sql_functions,
            schemas=self.schemas,
            server_id=server_id,
        )
        engine.open()
        return engine
