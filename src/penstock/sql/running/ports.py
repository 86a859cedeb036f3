"""What the engine needs of the world: a log of commands, topics, and a host for queries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from typing import Literal as OneOf

from penstock.errors import PenstockError
from penstock.sql.analysis.persistent import QueryInto
from penstock.sql.running.command_records import CommandRecord
from penstock.streams import StreamsTopology

QueryState = OneOf["RUNNING", "REBALANCING", "ERROR", "PAUSED", "UNRESPONSIVE"]


class LoggedCommand(NamedTuple):
    """A command and its place in the log."""

    offset: int
    command: CommandRecord


class CommandLog(Protocol):
    """Who may write writes alone: what was read before a write is all there is."""

    def enter(self) -> Sequence[LoggedCommand]:
        """Become the writer, and everything that was logged since the last reading."""

    def read(self) -> Sequence[LoggedCommand]:
        """Everything that was logged since the last reading."""

    def claim(self, server_id: str) -> str | None:
        """Become the writer, and log who runs the queries from now on; who did before."""

    def append(self, command: CommandRecord) -> int:
        """Store a command; its offset. CommandFenced: somebody else writes; nothing is stored."""

    def delete(self) -> None:
        """Remove all commands for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicShape:
    """A topic as it is."""

    name: str
    replicas: tuple[int, ...]  # For each partition, how many.

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self.replicas)

    @property
    def replication(self) -> int:
        """Of the first partition, as of all where nobody moves them."""
        return self.replicas[0] if self.replicas else 0


class TopicReaders(NamedTuple):
    """Who reads a topic in groups."""

    consumers: int
    groups: int


class TopicPort(Protocol):
    """The topics of the cluster."""

    def find(self, name: str) -> TopicShape | None:
        """A topic; None: there is none of that name."""

    def all(self) -> Sequence[TopicShape]:
        """Every topic, by name."""

    def readers(self) -> Mapping[str, TopicReaders]:
        """Who reads topics, by topic; those that nobody reads are left out."""

    def create(
        self, name: str, *, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        """Create one; replicas of -1 are the broker's to choose."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete those that are there."""


class WrittenRecord(NamedTuple):
    """A record to be stored."""

    topic: str
    key: bytes | None
    value: bytes | None
    time_ms: int | None  # None: now.


class RecordWriter(Protocol):
    """Stores records."""

    def write(self, records: Sequence[WrittenRecord]) -> None:
        """Store them all; returns when they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandStatus:
    """What became of a command; the offset is None where there was nothing to do."""

    id: str
    message: str
    query: str | None = None
    offset: int | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedQuery:
    """A query as a host runs it."""

    query: QueryInto
    topology: StreamsTopology
    properties: Mapping[str, str]  # What SET said when it was made.

    @property
    def id(self) -> str:
        """The query's."""
        return self.query.note.id


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryHealth:
    """How a query is doing."""

    state: QueryState
    failures: tuple[str, ...] = ()
    rows: int = 0
    lag: int | None = None


class QueryHost(Protocol):
    """Runs persistent queries."""

    def start(self, hosted: HostedQuery) -> None:
        """Begin, or go on where it was; a failure shows in its health."""

    def settle(self, hosted: HostedQuery) -> None:
        """Fix where it begins, for another server to start it."""

    def pause(self, query_id: str) -> None:
        """Stop for now; what it has is kept."""

    def drop_state(self, query_ids: Iterable[str]) -> None:
        """Remove what is on disk here: another server has gone on since. Topics keep all of it."""

    def end(self, query_ids: Iterable[str], *, forget: bool) -> None:
        """Stop for good; `forget` removes its state and internal topics too."""

    def health(self, query_id: str) -> QueryHealth | None:
        """How it is; None: it is not here."""


class ConnectRefused(PenstockError):
    """Connect refused what it was asked, with its status and its words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ConnectPort(Protocol):
    """A worker of Connect."""

    def create(self, name: str, config: Mapping[str, str]) -> Mapping[str, Any]: ...
    def problems(self, plugin: str, config: Mapping[str, str]) -> Sequence[str]: ...
    def names(self) -> Sequence[str]: ...
    def info(self, name: str) -> Mapping[str, Any]: ...
    def status(self, name: str) -> Mapping[str, Any]: ...
    def topics(self, name: str) -> Sequence[str]: ...
    def plugins(self) -> Sequence[Mapping[str, Any]]: ...
    def delete(self, name: str) -> None: ...
