"""A Java source connector and its task, as a worker knows connectors.

`java_connector` makes a class for one Java class. What the worker asks of it crosses to a JVM: in
the worker one JVM for each plug-in is kept, and each task has one of its own, which ends with it.
"""

import logging
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from penstock.connect.errors.kinds import ConnectError
from penstock.connect.java.host import JavaHost
from penstock.connect.java.wire import JavaRecordReader, decode, encode
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    CheckedValue,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
    Width,
    parse_type,
)
from penstock.connect.plugins.contract import (
    Config,
    ExactlyOnceSupport,
    SourceConnector,
    SourceTask,
)
from penstock.connect.records import SourceRecord
from penstock.errors import ConfigError

log = logging.getLogger("penstock.connect.java")
_POLL_MS = 500
_ANSWER_BYTES = 4 << 20  # About; a single record may be larger.
_CONFIRMED_MAX = 1000
_EVENT_MS = 1000
_RECONFIGURE = "reconfigure"


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaClass:
    """A class of Java's, and what its JVM is started with."""

    name: str
    version: str
    jars: tuple[Path, ...]
    options: tuple[str, ...]

    def host(self) -> JavaHost:
        """A JVM of its own."""
        return JavaHost(self.jars, self.options)

    def encoded(self, config: Config) -> bytes:
        """A configuration for Java, where some connectors look for the name of their own class."""
        return encode({**config, "connector.class": self.name})


class _WorkerHosts:
    """The worker's JVMs, one for each plug-in; one that has died is started anew."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosts: dict[tuple[tuple[Path, ...], tuple[str, ...]], JavaHost] = {}

    def of(self, java: JavaClass) -> JavaHost:
        """The JVM of a class's plug-in."""
        key = (java.jars, java.options)
        with self._lock:
            found = self._hosts.get(key)
            if found is None or not found.is_alive:
                found = self._hosts[key] = java.host()
            return found

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            hosts, self._hosts = list(self._hosts.values()), {}
        for one in hosts:
            one.close()


_HOSTS = _WorkerHosts()


def close_hosts() -> None:
    """End the JVMs that connectors share in this process; one that is asked again is started."""
    _HOSTS.close()


class JavaSourceConnector(SourceConnector):
    """What the worker calls; `java` is set by the class that `java_connector` makes."""

    java: ClassVar[JavaClass]

    def __init__(self) -> None:
        self._bridge: Any = None
        self._host: JavaHost | None = None
        self._stopping = threading.Event()

    @classmethod
    def version(cls) -> str:
        return cls.java.version

    @classmethod
    def task_class(cls) -> type:
        return _task_class(cls.java)

    @classmethod
    def config_def(cls) -> ConfigDef:
        host = _HOSTS.of(cls.java)
        bridge = host.bridge(cls.java.name)
        with host.errors(f"asking {cls.java.name} for its settings"):
            return ConfigDef(*(_entry(one) for one in decode(bridge.definitions())))

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        host = _HOSTS.of(cls.java)
        bridge = host.bridge(cls.java.name)
        with host.errors(f"validating with {cls.java.name}"):
            entries, values = decode(bridge.validate(cls.java.encoded(config)))
        defined = ConfigDef(*(_entry(one) for one in entries))
        return CheckedConfig(
            values=tuple(_checked(one, defined) for one in values), groups=defined.groups
        )

    def start(self, config: Config) -> None:
        self._host = host = _HOSTS.of(self.java)
        self._bridge = host.bridge(self.java.name)
        with host.errors(f"starting {self.java.name}"):
            self._bridge.startConnector(self.java.encoded(config))
        watch = threading.Thread(target=self._watch, name=f"java-{self.java.name}", daemon=True)
        watch.start()

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        assert self._host is not None
        with self._host.errors(f"asking {self.java.name} for its tasks"):
            made: list[dict[str, str | None]] = decode(self._bridge.taskConfigs(max_tasks))
        return [{name: text for name, text in one.items() if text is not None} for one in made]

    def stop(self) -> None:
        self._stopping.set()
        if self._host is not None and self._bridge is not None:
            with self._host.errors(f"stopping {self.java.name}"):
                self._bridge.stopConnector()

    def exactly_once_support(self, config: Config) -> ExactlyOnceSupport:
        host = _HOSTS.of(self.java)
        bridge = host.bridge(self.java.name)
        with host.errors(f"asking {self.java.name} whether it can write exactly once"):
            return ExactlyOnceSupport(bridge.exactlyOnce(self.java.encoded(config)))

    def alter_offsets(
        self, config: Config, offsets: Mapping[frozenset[tuple[str, Any]], Mapping[str, Any] | None]
    ) -> bool:
        host = _HOSTS.of(self.java)
        bridge = host.bridge(self.java.name)
        pairs = [[dict(partition), offset] for partition, offset in offsets.items()]
        with host.errors(f"altering offsets of {self.java.name}"):
            return bool(bridge.alterOffsets(self.java.encoded(config), encode(pairs)))

    def _watch(self) -> None:
        """Pass on what the connector asks for from threads of its own."""
        assert self._host is not None
        while not self._stopping.is_set():
            try:
                with self._host.errors(f"watching {self.java.name}"):
                    told = self._bridge.event(_EVENT_MS)
            except ConnectError as error:
                if not self._stopping.is_set():
                    self.context.raise_error(error)
                return
            if told == _RECONFIGURE:
                self.context.request_task_reconfiguration()
            elif told:
                self.context.raise_error(ConnectError(f"{self.java.name} failed in Java: {told}"))


class JavaSourceTask(SourceTask):
    """Reads records out of a JVM of its own."""

    java: ClassVar[JavaClass]

    def __init__(self) -> None:
        self._host: JavaHost | None = None
        self._bridge: Any = None
        self._reader = JavaRecordReader()
        self._listens = False  # Whether the Java task wants to hear of single records.
        self._polled: deque[SourceRecord] = deque()  # Told to nobody yet, in their order.
        self._confirmed: list[list[int | None]] = []
        self._lock = threading.Lock()

    def start(self, config: Config) -> None:
        known = [[*pair] for pair in self.context.offset_reader.all_offsets()]
        host = self.java.host()
        try:
            self._bridge = host.bridge(self.java.name)
            with host.errors(f"starting a task of {self.java.name}"):
                heard = self._bridge.startTask(self.java.encoded(config), encode(known))
        except BaseException:
            host.close()
            raise
        self._host, self._listens = host, bool(heard)

    def poll(self) -> list[SourceRecord] | None:
        host = self._host
        if host is None:
            return None
        try:
            self._confirm()
            with host.errors(f"polling {self.java.name}"):
                answer = self._bridge.poll(_POLL_MS, _ANSWER_BYTES)
        except ConnectError:
            if self._host is None:
                return None  # It was stopped meanwhile, and the JVM with it.
            raise
        if answer is None:
            return None
        records = self._reader.records(answer)
        if self._listens:
            self._polled += records
        return records

    def commit_record(
        self, record: SourceRecord, *, partition: int | None, offset: int | None
    ) -> None:
        if not self._listens:
            return
        if not self._polled or self._polled.popleft() is not record:
            raise ConnectError(f"{self.java.name}: records are confirmed out of their order")
        self._confirmed.append([partition, offset])
        if len(self._confirmed) >= _CONFIRMED_MAX:
            self._confirm()

    def commit(self) -> None:
        if self._host is None:
            return
        self._confirm()
        with self._host.errors(f"committing to {self.java.name}"):
            self._bridge.commit()

    def stop(self) -> None:
        with self._lock:  # The worker may stop a task from two threads.
            host, self._host = self._host, None
        if host is None:
            return
        try:
            with host.errors(f"stopping a task of {self.java.name}"):
                if self._bridge is not None:
                    self._bridge.stopTask()
        except ConnectError as error:
            log.warning("%s", error)
        finally:
            host.close()

    def _confirm(self) -> None:
        if self._confirmed and self._host is not None:
            places, self._confirmed = self._confirmed, []
            with self._host.errors(f"confirming records to {self.java.name}"):
                self._bridge.confirm(encode(places))


@cache
def java_connector(java: JavaClass) -> type[JavaSourceConnector]:
    """The class of a Java connector."""
    own = {"java": java, "__module__": __name__}
    return type(java.name.rpartition(".")[2], (JavaSourceConnector,), own)


@cache
def _task_class(java: JavaClass) -> type[JavaSourceTask]:
    own = {"java": java, "__module__": __name__}
    return type(f"{java.name.rpartition('.')[2]}Task", (JavaSourceTask,), own)


def _entry(told: Mapping[str, Any]) -> ConfigEntry:
    kind = ConfigType(told["type"])
    default = NO_DEFAULT if told["required"] else _parsed(told["name"], told["default"], kind)
    return ConfigEntry(
        told["name"],
        kind,
        default,
        Importance(told["importance"]),
        told["doc"] or "",
        group=told["group"],
        order=told["order"],
        width=Width(told["width"]),
        display_name=told["display"],
        dependents=tuple(told["dependents"]),
    )


def _checked(told: Mapping[str, Any], defined: ConfigDef) -> CheckedValue:
    """A setting that Java tells and does not define is one of its tasks' or of the user's."""
    name = told["name"]
    entry = defined.entry(name) or ConfigEntry(name, ConfigType.STRING, None, Importance.LOW, "")
    return CheckedValue(
        entry=entry,
        value=_parsed(name, told["value"], entry.type),
        errors=tuple(told["errors"]),
        recommended=tuple(told["recommended"]),
        visible=told["visible"],
    )


def _parsed(name: str, text: str | None, kind: ConfigType) -> Any:
    try:
        return parse_type(name, text, kind)
    except ConfigError:
        return text  # Java has it as it is.
