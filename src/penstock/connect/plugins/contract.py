"""What a connector is: the methods a worker calls, in the order it calls them.

A *connector* is made in the worker: `start(config)`, then `task_configs(n)`, then `stop()`. Each of
its task configurations becomes a *task*, which is made where it runs, on Spark:

    source: initialize(context), start(config), then poll(), commit_record(), commit() ..., stop()
    sink:   initialize(context), start(config), open(partitions),
            then put(records), flush(offsets) ..., close(partitions), stop()

Configurations are texts, as they were given to the worker; `cls.config_def().parse(config)` makes
values of them. Everything a method raises ends the task, except a RetriableConnectError of `put` or
`poll`, after which the worker calls it again.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Protocol

from penstock.connect.plugins.config_def import CheckedConfig, ConfigDef
from penstock.connect.records import ConnectRecord, SinkRecord, SourceRecord
from penstock.connect.values.schema import Schema
from penstock.records.topic_partition import TopicPartition

Config = Mapping[str, str]


class ExactlyOnceSupport(Enum):
    """Whether a source connector, configured so, can write exactly once."""

    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class TransactionBoundaries(Enum):
    """Whether a source connector, configured so, can say itself where transactions end."""

    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class ConnectorContext(Protocol):
    """What a connector may ask of its worker."""

    def request_task_reconfiguration(self) -> None:
        """Have `task_configs` called again, because the source has changed."""

    def raise_error(self, error: Exception) -> None:
        """Fail the connector."""


class _Connector(ABC):
    # Libraries that may be missing: what is imported, and what is installed for it. A module of a
    # connector must load without them (`libraries.py`).
    libraries: ClassVar[Mapping[str, str]] = {}
    context: ConnectorContext

    @classmethod
    def version(cls) -> str:
        """The version that REST shows."""
        return "0.1.0"

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef:
        """The connector's own settings; those that all have are the worker's."""

    @classmethod
    @abstractmethod
    def task_class(cls) -> type:
        """The class of its tasks."""

    def initialize(self, context: ConnectorContext) -> None:
        """Called once, before `start`."""
        self.context = context

    @abstractmethod
    def start(self, config: Config) -> None:
        """Begin: look at the source or target as far as tasks need it."""

    @abstractmethod
    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """One configuration for each task, at most so many."""

    def stop(self) -> None:
        """End what `start` began."""
        return

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        """All that is wrong with a configuration; settings that contradict each other go here."""
        return cls.config_def().validate(config)


class SourceConnector(_Connector):
    """Brings records in."""

    def exactly_once_support(self, config: Config) -> ExactlyOnceSupport:
        """Whether its offsets are such that a record is never read twice."""
        return ExactlyOnceSupport.UNSUPPORTED

    def can_define_transaction_boundaries(self, config: Config) -> TransactionBoundaries:
        """Whether its tasks use `SourceTaskContext.transaction`."""
        return TransactionBoundaries.UNSUPPORTED

    def alter_offsets(
        self, config: Config, offsets: Mapping[frozenset[tuple[str, Any]], Mapping[str, Any] | None]
    ) -> bool:
        """Check offsets that a user wants to set; raise ConnectError for those it cannot use.

        Keys are the items of source partitions. False: nothing was checked.
        """
        return False


class SinkConnector(_Connector):
    """Takes records out."""

    def alter_offsets(self, config: Config, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Do the same in a target that keeps offsets of its own. False: it keeps none."""
        return False


class OffsetReader(Protocol):
    """What was committed for a source partition, before the task started or since."""

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        """The offset of one; None: there is none yet."""

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        """The offsets of several, in their order."""

    def all_offsets(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Every partition of the connector that has an offset, with it."""


class TransactionContext(Protocol):
    """Lets a task say where a transaction ends (`transaction.boundary=connector`)."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """End it with this record, or with the batch that `poll` returns next."""

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Drop it, up to this record or the batch."""


class SourceTaskContext(Protocol):
    """What a source task may ask of its worker."""

    @property
    def config(self) -> Config:
        """The configuration of the task, with its secrets resolved."""

    @property
    def offset_reader(self) -> OffsetReader:
        """Where to go on."""

    @property
    def transaction(self) -> TransactionContext | None:
        """None: the worker decides where transactions end."""


class SourceTask(ABC):
    """Reads one part of a source."""

    context: SourceTaskContext

    def initialize(self, context: SourceTaskContext) -> None:
        """Called once, before `start`."""
        self.context = context

    @abstractmethod
    def start(self, config: Config) -> None:
        """Connect, and go to where `context.offset_reader` says."""

    @abstractmethod
    def poll(self) -> list[SourceRecord] | None:
        """What is new; None or an empty list where nothing is, after a short wait."""

    def commit_record(
        self, record: SourceRecord, *, partition: int | None, offset: int | None
    ) -> None:
        """One record is in the topic; both are None where a transform dropped it."""
        return

    def commit(self) -> None:
        """The offsets of everything polled until the last commit are stored."""
        return

    def stop(self) -> None:
        """End; may be called from another thread while `poll` waits, which must then return."""
        return


class ErrantRecordReporter(Protocol):
    """Takes records that the target refuses, where `errors.tolerance=all`."""

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Put a record aside; raises ConnectError where none are tolerated."""


class SinkTaskContext(Protocol):
    """What a sink task may ask of its worker."""

    @property
    def config(self) -> Config:
        """The configuration of the task, with its secrets resolved."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions it has."""

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """None: no record is tolerated, so the task raises."""

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from here: for a target that keeps offsets of its own."""

    def set_timeout_ms(self, timeout_ms: int) -> None:
        """How long to wait before a `put` that was refused is tried again."""

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Bring nothing of these for a while."""

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Bring them again."""

    def request_commit(self) -> None:
        """Commit offsets soon."""


class SinkTask(ABC):
    """Writes some partitions to a target."""

    context: SinkTaskContext

    def initialize(self, context: SinkTaskContext) -> None:
        """Called once, before `start`."""
        self.context = context

    @abstractmethod
    def start(self, config: Config) -> None:
        """Connect."""

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions are now the task's."""
        return

    @abstractmethod
    def put(self, records: list[SinkRecord]) -> None:
        """Take records; they may be kept until `flush`."""

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Have everything up to these offsets in the target; they are committed next."""
        return

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The offsets that may be committed: after `flush`, all of them."""
        self.flush(offsets)
        return offsets

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions are the task's no more."""
        return

    def stop(self) -> None:
        """End."""
        return


class Transform(ABC):
    """Makes one record of one, or none. It is made with its parsed settings."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef:
        """Its settings."""

    @abstractmethod
    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """The record it makes, of the same class; None: the record is dropped."""

    def close(self) -> None:
        """End."""
        return


class Predicate(ABC):
    """Says whether a transform is for a record. It is made with its parsed settings."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef:
        """Its settings."""

    @abstractmethod
    def test(self, record: ConnectRecord) -> bool:
        """Whether it holds."""

    def close(self) -> None:
        """End."""
        return


SchemaAndValue = tuple[Schema | None, Any]
RawHeaders = Sequence[tuple[str, bytes | None]]


class Converter(ABC):
    """Between values and the bytes of keys or values; it is made with its settings as given."""

    KAFKA_VERSION: ClassVar[str] = "4.3.1"  # REST shows it for what has Kafka's name.

    def __init__(self, config: Mapping[str, Any], *, is_key: bool) -> None:
        self.config = config
        self.is_key = is_key

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef:
        """Its settings, without the prefix `key.converter.` or `value.converter.`."""

    @abstractmethod
    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The bytes of a value; DataError for one that cannot be written."""

    @abstractmethod
    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The value of some bytes; DataError for those that cannot be read."""

    def close(self) -> None:
        """End."""
        return


class HeaderConverter(ABC):
    """Between values and the bytes of headers."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef:
        """Its settings, without the prefix `header.converter.`."""

    @abstractmethod
    def from_connect_header(
        self, topic: str, name: str, schema: Schema | None, value: Any
    ) -> bytes | None:
        """The bytes of a header."""

    @abstractmethod
    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """The value of a header."""

    def close(self) -> None:
        """End."""
        return
