"""The connector and the task of every capture: a snapshot of tables, then their changes.

A database has one log and this one reader of it, so there is one task. It goes on from where the
offsets say that it was left, and with a server that went away it tries again.
"""

import logging
import threading
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from penstock.connect.connectors.changes.envelope import heartbeat
from penstock.connect.connectors.changes.settings import (
    ChangesSettings,
    SettingsRules,
    SnapshotMode,
)
from penstock.connect.connectors.checks import is_resolved, with_errors
from penstock.connect.errors.kinds import ConnectError, RetriableConnectError
from penstock.connect.plugins.config_def import CheckedConfig, ConfigDef
from penstock.connect.plugins.contract import (
    Config,
    ExactlyOnceSupport,
    SourceConnector,
    SourceTask,
)
from penstock.connect.plugins.libraries import missing_libraries
from penstock.connect.records import SourceRecord
from penstock.errors import PenstockError

log = logging.getLogger("penstock.connect.changes")


class KeptPosition(Protocol):
    """Where a capture is."""

    def offset(self, **more: Any) -> dict[str, Any]:
        """As it is kept."""


PositionT = TypeVar("PositionT", bound=KeptPosition)
PositionT_co = TypeVar("PositionT_co", bound=KeptPosition, covariant=True)
SettingsT = TypeVar("SettingsT", bound=ChangesSettings)


class Capture(Protocol[PositionT_co]):
    """A connection to a server whose tables are captured."""

    def take(self, stopping: threading.Event) -> list[SourceRecord]:
        """What is next; nothing when there was nothing new for a while."""

    def idle_position(self) -> PositionT_co | None:
        """Behind all that the server has; None where more is under way."""

    def close(self) -> None:
        """Let go of the server."""


CaptureT = TypeVar("CaptureT", bound=Capture[Any])


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a server is tried (-1: for ever), and how long to wait in between."""

    tries: int
    pause_ms: int

    @classmethod
    def with_lost_servers(cls, settings: ChangesSettings) -> "Patience":
        """As the settings have it for a server that is away."""
        given = settings.given
        return cls(given["errors.max.retries"], given["retriable.restart.connector.wait.ms"])


class CaptureTask(SourceTask, Generic[SettingsT, PositionT, CaptureT]):
    """Snapshot and stream, with a server that may go away and come back."""

    libraries: ClassVar[Mapping[str, str]]

    def __init__(self) -> None:
        self._settings: SettingsT | None = None
        self._position: PositionT | None = None  # Behind the last record that was polled.
        self._capture: CaptureT | None = None  # None: not connected.
        self._failures = 0
        self._heartbeat_s = time.monotonic()
        self._is_first = True
        self._stopping = threading.Event()

    # What each database does its own way

    @classmethod
    @abstractmethod
    def settings_of(cls, config: Config) -> SettingsT:
        """ConfigError for a configuration that is not valid."""

    @classmethod
    @abstractmethod
    def position_of(cls, offset: Mapping[str, Any]) -> PositionT:
        """ConnectError for an offset that is none of this connector."""

    @classmethod
    @abstractmethod
    def opened(cls, settings: SettingsT, position: PositionT | None) -> CaptureT:
        """Connected to the server."""

    @classmethod
    @abstractmethod
    def patience_with(cls, error: Exception, settings: SettingsT) -> Patience | None:
        """What to do about an error of the server; None: it is a fault of ours."""

    @classmethod
    @abstractmethod
    def server_errors(cls, settings: SettingsT) -> list[tuple[str, str]]:
        """What a server says that is asked whether it can be captured, by setting."""

    @staticmethod
    @abstractmethod
    def time_told(now_ms: int) -> Mapping[str, int]:
        """The time of an offset, by the name and in the unit that this database's offsets have."""

    # What the worker calls

    def start(self, config: Config) -> None:
        lacking = missing_libraries(type(self))
        if lacking:
            raise ConnectError(" ".join(lacking))
        self._settings = settings = self.settings_of(config)
        offset = self.context.offset_reader.offset(settings.partition)
        if offset is not None:
            self._position = self.position_of(offset)

    def poll(self) -> list[SourceRecord] | None:
        assert self._settings is not None
        try:
            records = self._taken(self._settings)
        except PenstockError:
            raise
        except Exception as error:
            self._lose(error, self._settings)
            raise  # A fault of ours.
        self._failures = 0
        if records:
            offset = records[-1].source_offset
            assert offset is not None
            self._position = self.position_of(offset)
        return records or None

    def stop(self) -> None:
        self._stopping.set()
        self._hang_up()

    def _taken(self, settings: SettingsT) -> list[SourceRecord]:
        if self._capture is None:
            anew = self._is_first and settings.snapshot is SnapshotMode.ALWAYS
            self._capture = self.opened(settings, None if anew else self._position)
            self._is_first = False
        records = self._capture.take(self._stopping)
        return records or self._heartbeat(self._capture, settings)

    def _heartbeat(self, capture: CaptureT, settings: SettingsT) -> list[SourceRecord]:
        """A record that moves the position on where captured tables do not change."""
        interval_s = settings.given["heartbeat.interval.ms"] / 1000
        if not interval_s or time.monotonic() - self._heartbeat_s < interval_s:
            return []
        position = capture.idle_position()
        if position is None:
            return []
        self._heartbeat_s = time.monotonic()
        now_ms = time.time_ns() // 1_000_000
        offset = position.offset(**self.time_told(now_ms))
        topic, server = settings.heartbeat_topic, settings.prefix
        return [heartbeat(topic, server, now_ms, settings.partition, offset)]

    def _lose(self, error: Exception, settings: SettingsT) -> None:
        """Raise what the worker should do about a server that is away or refuses."""
        self._hang_up()
        patience = self.patience_with(error, settings)
        if patience is None:
            return
        self._failures += 1
        if 0 <= patience.tries < self._failures:
            raise ConnectError(f"The server was tried {self._failures} times: {error}") from error
        log.warning("The server for %s: %s; tried again", settings.prefix, error)
        self._stopping.wait(patience.pause_ms / 1000)
        raise RetriableConnectError(str(error)) from error

    def _hang_up(self) -> None:
        capture, self._capture = self._capture, None
        if capture is not None:
            capture.close()


class CaptureConnector(SourceConnector):
    """One reader of a database's log, so there is one task."""

    rules: ClassVar[SettingsRules]
    task: ClassVar[type[CaptureTask[Any, Any, Any]]]

    def __init__(self) -> None:
        self._config: Config = {}

    @classmethod
    def config_def(cls) -> ConfigDef:
        return cls.rules.config

    @classmethod
    def task_class(cls) -> type:
        return cls.task

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        """Also, with settings that are right, that the server is there."""
        checked = cls.rules.validated(config)
        if checked.error_count or missing_libraries(cls) or not is_resolved(config):
            return checked
        return with_errors(checked, cls.task.server_errors(cls.task.settings_of(config)))

    def start(self, config: Config) -> None:
        self.rules.config.parse(config)
        self.rules.ensure_served(config)
        self._config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._config)]

    def exactly_once_support(self, config: Config) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Config, offsets: Mapping[frozenset[tuple[str, Any]], Mapping[str, Any] | None]
    ) -> bool:
        wanted = self.task.settings_of(config).partition
        for partition, offset in offsets.items():
            if offset is None:
                continue  # Whatever was there may be forgotten.
            if dict(partition) != wanted:
                raise ConnectError(f"The partition must be {wanted}, not {dict(partition)}.")
            self.task.position_of(offset)
        return True
