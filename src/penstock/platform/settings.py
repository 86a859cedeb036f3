"""What `penstock up` is told: one properties file, taken apart into what each process gets.

The broker's settings stand there under Kafka's names, a service's under its own names behind the
service's: `registry.schema.compatibility.level`. Three settings are of the platform itself:
`services` chooses what is started, `processes` how many brokers, `directory` says where its files
are. Everything is checked
here, before anything starts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from penstock.config.broker import BrokerConfig
from penstock.config.listeners import PLAINTEXT
from penstock.connect.settings import WorkerSettings
from penstock.errors import ConfigError
from penstock.http.access import HttpListener
from penstock.platform.brokers import broker_row, checked_count
from penstock.registry.service.config import RegistryConfig
from penstock.rest.config import RestConfig
from penstock.security.tls.contexts import TlsSettings
from penstock.sql.service.settings import SqlConfig

BROKER = "broker"
CHOICE = "services"
DIRECTORY = "directory"
PROCESS_COUNT = "processes"
DEFAULT_DIRECTORY = "penstock-data"
_LISTENERS = "listeners"
_LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


class ServiceConfig(Protocol):
    """What the settings of every service have."""

    @property
    def listeners(self) -> Sequence[HttpListener]: ...

    @property
    def tls(self) -> TlsSettings | None: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind:
    """A service, as far as its settings go.

    platform/services/table.py says how those are run that share a process.
    """

    name: str  # In `services`, and in front of its settings.
    title: str
    bootstrap: str  # The setting that names the brokers.
    configure: Callable[[Mapping[str, str]], ServiceConfig]
    # Settings that hold the address of another service, which is filled in where that one runs.
    neighbours: Mapping[str, str] = field(default_factory=dict)
    # Settings that name files, with where they are below the directory of the platform.
    files: Mapping[str, str] = field(default_factory=dict)
    usual: Mapping[str, str] = field(default_factory=dict)  # What holds where nobody chose.
    is_usual: bool = True  # Started where nobody chose.
    command: str = ""  # The words behind `penstock` of its own process; empty: it shares one.


_JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
SERVICES = (
    ServiceKind(
        name="registry",
        title="schema registry",
        bootstrap="kafkastore.bootstrap.servers",
        configure=RegistryConfig.of,
    ),
    ServiceKind(
        name="rest",
        title="REST proxy",
        bootstrap="bootstrap.servers",
        configure=RestConfig.of,
        neighbours={"schema.registry.url": "registry"},
    ),
    ServiceKind(
        name="connect",
        title="Connect worker",
        bootstrap="bootstrap.servers",
        configure=WorkerSettings.distributed,
        files={"penstock.connect.spark.log": "logs/connect-spark.log"},
        usual={
            "group.id": "connect-cluster",
            "config.storage.topic": "connect-configs",
            "offset.storage.topic": "connect-offsets",
            "status.storage.topic": "connect-status",
            "key.converter": _JSON_CONVERTER,
            "value.converter": _JSON_CONVERTER,
            "exactly.once.source.support": "enabled",
        },
        is_usual=False,  # It starts Spark, which takes seconds and half a gigabyte.
        command="connect distributed",  # A process can have one Spark, and SQL may want it.
    ),
    ServiceKind(
        name="sql",
        title="SQL server",
        bootstrap="bootstrap.servers",
        configure=SqlConfig.of,
        neighbours={"ksql.schema.registry.url": "registry", "ksql.connect.url": "connect"},
        files={"ksql.streams.state.dir": "sql"},
        is_usual=False,  # Its queries need Spark, which takes a gigabyte.
    ),
)
NAMES = (BROKER, *(kind.name for kind in SERVICES))
LIGHT = tuple(kind for kind in SERVICES if not kind.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One address where a service listens, and what it speaks there."""

    service: str
    setting: str  # Where the address can be changed.
    protocol: str  # A security protocol of Kafka's, http or https.
    host: str  # As it was written; empty or 0.0.0.0 for all interfaces.
    port: int

    @property
    def reach(self) -> str:
        """The host by which this machine comes to it."""
        return _LOOPBACK.get(self.host, self.host)

    @property
    def address(self) -> str:
        """What a client is given."""
        host = f"[{self.reach}]" if ":" in self.reach else self.reach
        is_http = self.protocol in ("http", "https")
        return f"{self.protocol}://{host}:{self.port}" if is_http else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedProcess:
    """One process of the tree."""

    name: str
    command: tuple[str, ...]  # The words behind `penstock`.
    properties: Mapping[str, str]  # What its file of settings says.
    doors: tuple[Door, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformSettings:
    """What was asked for, checked."""

    directory: Path
    brokers: tuple[Mapping[str, str], ...]  # Of each broker; empty: none is started.
    services: Mapping[str, Mapping[str, str]]  # Of each light service, by its name.
    workers: Mapping[str, Mapping[str, str]]  # Of each service with a process of its own.
    doors: tuple[Door, ...]
    warnings: tuple[str, ...]

    @property
    def processes(self) -> tuple[PlannedProcess, ...]:
        """In the order in which they are started."""
        found = []
        names = _broker_names(self.brokers)
        for name, properties in zip(names, self.brokers, strict=True):
            found.append(self._process(name, "server", properties, (name,)))
        if self.services:
            found.append(
                self._process("services", "services", self.services_file, tuple(self.services))
            )
        for kind in SERVICES:
            if kind.name in self.workers:
                own = self.workers[kind.name]
                found.append(self._process(kind.name, kind.command, own, (kind.name,)))
        return tuple(found)

    @property
    def services_file(self) -> dict[str, str]:
        """The settings of the light services as one file."""
        behind = {
            f"{service}.{name}": value
            for service, given in self.services.items()
            for name, value in given.items()
        }
        return {CHOICE: ",".join(self.services), **behind}

    def _process(
        self, name: str, command: str, properties: Mapping[str, str], inside: tuple[str, ...]
    ) -> PlannedProcess:
        doors = tuple(door for door in self.doors if door.service in inside)
        words = tuple(command.split())
        return PlannedProcess(name=name, command=words, properties=properties, doors=doors)


def directory_in(given: Mapping[str, str], option: str | None = None) -> Path:
    """Where the files of a tree are: as the command line says, or the file, or by default."""
    return Path(option or given.get(DIRECTORY, "").strip() or DEFAULT_DIRECTORY)


def broker_dirs(given: Mapping[str, str], directory: Path) -> tuple[Path, ...]:
    """The directories of the first broker that such settings lead to."""
    return BrokerConfig(_with_data(_of_broker(given), directory)).log_dirs


def broker_settings(given: Mapping[str, str], directory: Path, processes: int) -> PlatformSettings:
    """Broker processes and nothing else."""
    row = broker_row(given, processes)
    doors = _row_doors(row)
    _check_ports(doors)
    return PlatformSettings(
        directory=directory,
        brokers=row,
        services={},
        workers={},
        doors=tuple(doors),
        warnings=BrokerConfig(row[0]).warnings,
    )


def platform_settings(
    given: Mapping[str, str], directory: Path, processes: int | None = None
) -> PlatformSettings:
    """Everything a tree needs to know; ConfigError names the setting that is wrong.

    `processes` is how many brokers there are to be; None: what is given says it, or one.
    """
    chosen = _chosen(given.get(CHOICE))
    of_broker = _with_data(_of_broker(given), directory)
    count = processes or checked_count(given.get(PROCESS_COUNT, "1").strip())
    row = broker_row(of_broker, count) if BROKER in chosen else (of_broker,)
    broker = BrokerConfig(row[0])
    row_doors = _row_doors(row)
    brokers = _bootstrap(row_doors) if BROKER in chosen or _LISTENERS in of_broker else None
    doors = row_doors if BROKER in chosen else []
    warnings = list(broker.warnings) if BROKER in chosen else []
    services: dict[str, dict[str, str]] = {}
    workers: dict[str, dict[str, str]] = {}
    for kind in SERVICES:
        if kind.name not in chosen:
            continue
        own = _of_service(given, kind, brokers, _addresses(doors), directory)
        (workers if kind.command else services)[kind.name] = own
        config = _configured(kind, own)
        doors += _service_doors(kind, config)
        warnings += [f"{kind.name}.{warning}" for warning in config.warnings]
    _check_ports(doors)
    return PlatformSettings(
        directory=directory,
        brokers=row if BROKER in chosen else (),
        services=services,
        workers=workers,
        doors=tuple(doors),
        warnings=(*warnings, *_unused(given, chosen)),
    )


def _chosen(text: str | None) -> tuple[str, ...]:
    """The services to start, in our order; None: the usual ones."""
    if text is None:
        return (BROKER, *(kind.name for kind in SERVICES if kind.is_usual))
    words = {word.strip().lower() for word in text.split(",")} - {""}
    unknown = sorted(words - set(NAMES))
    if unknown or not words:
        wrong = f"has {unknown[0]}" if unknown else "is empty"
        raise ConfigError(f"{CHOICE} {wrong}: write some of {', '.join(NAMES)}")
    return tuple(name for name in NAMES if name in words)


def _of_broker(given: Mapping[str, str]) -> dict[str, str]:
    own = (CHOICE, DIRECTORY, PROCESS_COUNT)
    return {
        name: value for name, value in given.items() if name not in own and _kind_of(name) is None
    }


def _with_data(given: Mapping[str, str], directory: Path) -> dict[str, str]:
    """With its data below the directory, unless somebody chose another place."""
    if {"log.dirs", "log.dir"} & given.keys():
        return dict(given)
    return {**given, "log.dirs": str(directory / "data")}


def _of_service(
    given: Mapping[str, str],
    kind: ServiceKind,
    brokers: str | None,
    addresses: Mapping[str, str],
    directory: Path,
) -> dict[str, str]:
    """What was given for a service, and where it finds the others if nobody said so."""
    prefix = f"{kind.name}."
    own = {
        name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)
    }
    for setting, service in kind.neighbours.items():
        if service in addresses:
            own.setdefault(setting, addresses[service])
    for setting, path in kind.files.items():
        own.setdefault(setting, str(directory / path))
    own = {**kind.usual, **own}
    if own.get(kind.bootstrap):
        return own
    if brokers is None:
        raise ConfigError(
            f"{prefix}{kind.bootstrap} is missing: say where the brokers are, or start one with "
            f"{CHOICE}={BROKER},{kind.name}"
        )
    return {**own, kind.bootstrap: brokers}


def _addresses(doors: Iterable[Door]) -> dict[str, str]:
    """The first address of each service."""
    found: dict[str, str] = {}
    for door in doors:
        found.setdefault(door.service, door.address)
    return found


def _configured(kind: ServiceKind, given: Mapping[str, str]) -> ServiceConfig:
    """A service names its settings as it knows them; here they stand behind its name."""
    try:
        return kind.configure(given)
    except ConfigError as error:
        raise ConfigError(f"{kind.name}.{error}") from error


def _bootstrap(doors: Iterable[Door]) -> str | None:
    """Where services come to the brokers: None where only secured listeners lead to them."""
    plain: dict[str, str] = {}
    for door in doors:
        if door.protocol == PLAINTEXT:
            plain.setdefault(door.service, door.address)
    return ",".join(plain.values()) or None


def _broker_names(row: Sequence[Mapping[str, str]]) -> list[str]:
    """One alone has no number."""
    if len(row) == 1:
        return [BROKER]
    return [f"{BROKER}-{properties['broker.id']}" for properties in row]


def _row_doors(row: Sequence[Mapping[str, str]]) -> list[Door]:
    found: list[Door] = []
    for name, properties in zip(_broker_names(row), row, strict=True):
        found += _broker_doors(name, BrokerConfig(dict(properties)))
    return found


def _broker_doors(name: str, broker: BrokerConfig) -> list[Door]:
    return [
        Door(
            service=name,
            setting=_LISTENERS,
            protocol=listener.security_protocol,
            host=listener.host,
            port=listener.port,
        )
        for listener in broker.listeners
    ]


def _service_doors(kind: ServiceKind, config: ServiceConfig) -> list[Door]:
    setting = f"{kind.name}.{_LISTENERS}"
    return [
        Door(service=kind.name, setting=setting, protocol=one.scheme, host=one.host, port=one.port)
        for one in config.listeners
    ]


def _check_ports(doors: Iterable[Door]) -> None:
    """Every door has a port of its own that others can be told."""
    known: dict[int, Door] = {}
    for door in doors:
        if door.port == 0:
            raise ConfigError(
                f"{door.setting} asks for any free port: write one, so that others find it"
            )
        other = known.setdefault(door.port, door)
        if other.service != door.service:
            raise ConfigError(
                f"{other.setting} and {door.setting} both have port {door.port}: each service "
                "needs its own"
            )


def _unused(given: Mapping[str, str], chosen: Sequence[str]) -> list[str]:
    """Settings of services that are not started."""
    kinds = {name: _kind_of(name) for name in given}
    return [
        f"{name} does nothing: {CHOICE} has no {kind.name}"
        for name, kind in kinds.items()
        if kind is not None and kind.name not in chosen
    ]


def _kind_of(name: str) -> ServiceKind | None:
    """The service that a setting belongs to."""
    return next((kind for kind in SERVICES if name.startswith(f"{kind.name}.")), None)
