"""What `penstock up` is told: one properties file, taken apart into what each process gets.

The broker's settings stand there under Kafka's names, a service's under its own names behind the
service's: `registry.schema.compatibility.level`. Two settings are of the platform itself:
`services` chooses what is started, `directory` says where its files are. Everything is checked
here, before anything starts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from penstock.config.broker import BrokerConfig
from penstock.config.listeners import PLAINTEXT
from penstock.errors import ConfigError
from penstock.http.access import HttpListener
from penstock.registry.service.config import RegistryConfig
from penstock.rest.config import RestConfig
from penstock.security.tls.contexts import TlsSettings

BROKER = "broker"
CHOICE = "services"
DIRECTORY = "directory"
DEFAULT_DIRECTORY = "penstock-data"
_LISTENERS = "listeners"
_LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


class ServiceConfig(Protocol):
    """What the settings of every light service have."""

    @property
    def listeners(self) -> Sequence[HttpListener]: ...

    @property
    def tls(self) -> TlsSettings | None: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind:
    """A light service, as far as its settings go; platform/services/table.py says how to run it."""

    name: str  # In `services`, and in front of its settings.
    title: str
    bootstrap: str  # The setting that names the brokers.
    configure: Callable[[Mapping[str, str]], ServiceConfig]
    # Settings that hold the address of another service, which is filled in where that one runs.
    neighbours: Mapping[str, str] = field(default_factory=dict)


LIGHT = (
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
)
NAMES = (BROKER, *(kind.name for kind in LIGHT))


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
    command: str  # The word behind `penstock`.
    properties: Mapping[str, str]  # What its file of settings says.
    doors: tuple[Door, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformSettings:
    """What was asked for, checked."""

    directory: Path
    broker: Mapping[str, str] | None  # None: no broker is started.
    services: Mapping[str, Mapping[str, str]]  # Of each light service, by its name.
    doors: tuple[Door, ...]
    warnings: tuple[str, ...]

    @property
    def processes(self) -> tuple[PlannedProcess, ...]:
        """In the order in which they are started."""
        found = []
        if self.broker is not None:
            found.append(self._process(BROKER, "server", self.broker, (BROKER,)))
        if self.services:
            found.append(
                self._process("services", "services", self.services_file, tuple(self.services))
            )
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
        return PlannedProcess(name=name, command=command, properties=properties, doors=doors)


def directory_in(given: Mapping[str, str], option: str | None = None) -> Path:
    """Where the files of a tree are: as the command line says, or the file, or by default."""
    return Path(option or given.get(DIRECTORY, "").strip() or DEFAULT_DIRECTORY)


def platform_settings(given: Mapping[str, str], directory: Path) -> PlatformSettings:
    """Everything a tree needs to know; ConfigError names the setting that is wrong."""
    chosen = _chosen(given.get(CHOICE))
    of_broker = _with_data(_of_broker(given), directory)
    broker = BrokerConfig(of_broker)
    brokers = _bootstrap(broker) if BROKER in chosen or _LISTENERS in of_broker else None
    doors = _broker_doors(broker) if BROKER in chosen else []
    warnings = list(broker.warnings) if BROKER in chosen else []
    services = {}
    for kind in LIGHT:
        if kind.name not in chosen:
            continue
        services[kind.name] = _of_service(given, kind, brokers, _addresses(doors))
        config = _configured(kind, services[kind.name])
        doors += _service_doors(kind, config)
        warnings += [f"{kind.name}.{warning}" for warning in config.warnings]
    _check_ports(doors)
    return PlatformSettings(
        directory=directory,
        broker=of_broker if BROKER in chosen else None,
        services=services,
        doors=tuple(doors),
        warnings=(*warnings, *_unused(given, chosen)),
    )


def _chosen(text: str | None) -> tuple[str, ...]:
    """The services to start, in our order; None: all."""
    if text is None:
        return NAMES
    words = {word.strip().lower() for word in text.split(",")} - {""}
    unknown = sorted(words - set(NAMES))
    if unknown or not words:
        wrong = f"has {unknown[0]}" if unknown else "is empty"
        raise ConfigError(f"{CHOICE} {wrong}: write some of {', '.join(NAMES)}")
    return tuple(name for name in NAMES if name in words)


def _of_broker(given: Mapping[str, str]) -> dict[str, str]:
    own = (CHOICE, DIRECTORY)
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
) -> dict[str, str]:
    """What was given for a service, and where it finds the others if nobody said so."""
    prefix = f"{kind.name}."
    own = {
        name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)
    }
    for setting, service in kind.neighbours.items():
        if service in addresses:
            own.setdefault(setting, addresses[service])
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


def _bootstrap(broker: BrokerConfig) -> str | None:
    """Where services come to the broker: None where only secured listeners lead to it."""
    plain = [door for door in _broker_doors(broker) if door.protocol == PLAINTEXT]
    return plain[0].address if plain else None


def _broker_doors(broker: BrokerConfig) -> list[Door]:
    return [
        Door(
            service=BROKER,
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
    """The light service that a setting belongs to."""
    return next((kind for kind in LIGHT if name.startswith(f"{kind.name}.")), None)
