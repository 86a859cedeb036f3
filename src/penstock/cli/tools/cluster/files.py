"""A cluster of one machine as files: ports, properties and directories below one directory.

What exists is kept as it is, so that settings a developer changed by hand live on, and a cluster
that was stopped goes on with its data and its ports. Starting processes is left to `up.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.cli.secure_files import SecureFiles
from penstock.config.properties import format_properties, read_properties
from penstock.errors import CommandError
from penstock.platform.probing import is_free
from penstock.security.private_files import write_private

HOST = "127.0.0.1"
FIRST_PORT = 9092
ZOOKEEPER_PORT = 2181
_PORT_MAX = 65_535
_SECURE_PORT = "secureClientPort"
_TRIES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFiles:
    """One process to be: its settings, its data, what it prints."""

    number: int
    port: int
    properties: Path
    data: Path
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFiles:
    """All processes of a cluster."""

    directory: Path
    zookeepers: tuple[ServerFiles, ...]
    brokers: tuple[ServerFiles, ...]
    secure: SecureFiles | None = None  # None: everybody may do everything, in plain text.

    @property
    def connect(self) -> str:
        """What zookeeper.connect takes."""
        return ",".join(f"{HOST}:{server.port}" for server in self.zookeepers)

    @property
    def bootstrap(self) -> str:
        """What clients take."""
        return ",".join(f"{HOST}:{server.port}" for server in self.brokers)


def prepare(
    directory: Path,
    *,
    brokers: int,
    zookeepers: int,
    port: int | None = None,
    zookeeper_port: int | None = None,
    overrides: Mapping[str, str] | None = None,
    secure: SecureFiles | None = None,
) -> ClusterFiles:
    """The files of a cluster, written where they are missing; None: ports that are free."""
    directory = directory.absolute()
    if secure is not None:
        secure.refuse_missing()
    _refuse_other_security(directory, secure)
    for name in ("config", "data", "logs"):
        _make(directory / name)
    ensemble = _zookeepers(directory, zookeepers, zookeeper_port)
    made = ClusterFiles(
        directory=directory,
        zookeepers=ensemble,
        brokers=_brokers(directory, brokers, port),
        secure=secure,
    )
    _write_zookeepers(made)
    for broker in made.brokers:
        if not broker.properties.exists():
            text = broker_text(made, broker, overrides or {})
            write_private(broker.properties, text)
        elif overrides:
            _refuse_override(broker.properties, overrides)
    return made


def broker_text(cluster: ClusterFiles, broker: ServerFiles, overrides: Mapping[str, str]) -> str:
    """config/server-N.properties."""
    copies = min(3, len(cluster.brokers))
    settings = {
        "broker.id": str(broker.number),
        "listeners": f"{_protocol(cluster.secure)}://{HOST}:{broker.port}",
        "log.dirs": str(broker.data),
        "zookeeper.connect": cluster.connect,
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(min(2, copies)),
        "group.initial.rebalance.delay.ms": "0",
        **(read_properties(cluster.secure.broker_properties) if cluster.secure else {}),
        **overrides,
    }
    lines = [f"# Broker {broker.number} of a cluster on this machine; change what you like."]
    return "\n".join([*lines, format_properties(settings)])


def zookeeper_text(cluster: ClusterFiles, server: ServerFiles, ports: Sequence[int]) -> str:
    """config/zookeeper.properties, or zookeeper-N.properties of an ensemble."""
    lead = "clientPort" if cluster.secure is None else _SECURE_PORT
    settings = {
        "dataDir": str(server.data),
        lead: str(server.port),
        f"{lead}Address": HOST,
        "tickTime": "500",
        "maxSessionTimeout": "60000",
        "maxClientCnxns": "0",
        "autopurge.purgeInterval": "1",
    }
    if len(cluster.zookeepers) > 1:
        settings.update({"initLimit": "20", "syncLimit": "10"})
        for other in cluster.zookeepers:
            at = 2 * (other.number - 1)
            settings[f"server.{other.number}"] = f"{HOST}:{ports[at]}:{ports[at + 1]}"
    if cluster.secure is not None:
        settings.update(_ensemble_alone(cluster, cluster.secure))
    return "\n".join(["# ZooKeeper of a cluster on this machine.", format_properties(settings)])


def _ensemble_alone(cluster: ClusterFiles, secure: SecureFiles) -> dict[str, str]:
    """What a secured ZooKeeper says; a server alone has no others to come to by TLS."""
    settings = read_properties(secure.zookeeper_properties)
    if len(cluster.zookeepers) > 1:
        return settings
    return {name: v for name, v in settings.items() if "uorum" not in name}


def free_ports(first: int, count: int) -> list[int]:
    """So many ports in a row that nobody listens on, from `first` on or a little later."""
    start = first
    for _ in range(_TRIES):
        taken = [port for port in range(start, start + count) if not is_free(HOST, port)]
        if not taken and start + count - 1 <= _PORT_MAX:
            return list(range(start, start + count))
        start = max(taken, default=start) + 1
    raise CommandError(f"There are no {count} free ports in a row from {first} on.")


def _zookeepers(directory: Path, count: int, port: int | None) -> tuple[ServerFiles, ...]:
    names = ["zookeeper"] if count == 1 else [f"zookeeper-{n}" for n in range(1, count + 1)]
    _refuse_other_ensemble(directory, names)
    keys = ("clientPort", _SECURE_PORT)
    return _servers(directory, names, keys, ZOOKEEPER_PORT, port, first_number=1)


def _brokers(directory: Path, count: int, port: int | None) -> tuple[ServerFiles, ...]:
    names = [f"server-{number}" for number in range(count)]
    return _servers(directory, names, ("listeners",), FIRST_PORT, port, first_number=0)


def _servers(
    directory: Path,
    names: Sequence[str],
    keys: Sequence[str],
    usual_port: int,
    wanted_port: int | None,
    *,
    first_number: int,
) -> tuple[ServerFiles, ...]:
    """Those that exist with the ports they have, new ones with the ports that follow."""
    files = [directory / "config" / f"{name}.properties" for name in names]
    ports = {file: _port_in(file, keys) for file in files if file.exists()}
    if ports and wanted_port is not None and ports.get(files[0]) != wanted_port:
        raise CommandError(
            f"{directory} holds a cluster that uses port {ports.get(files[0])}, not {wanted_port}. "
            "Leave the port out, choose another --dir, or change the port in its config files."
        )
    new = [file for file in files if file not in ports]
    if wanted_port is not None and new and not ports:
        ports.update(zip(new, range(wanted_port, wanted_port + len(new)), strict=True))
    elif new:
        first = max(ports.values()) + 1 if ports else usual_port
        ports.update(zip(new, free_ports(first, len(new)), strict=True))
    return tuple(
        ServerFiles(
            number=number,
            port=ports[file],
            properties=file,
            data=directory / "data" / name.replace("server", "kafka"),
            log=directory / "logs" / f"{name}.out",
        )
        for number, (name, file) in enumerate(zip(names, files, strict=True), start=first_number)
    )


def _port_in(file: Path, keys: Sequence[str]) -> int:
    """The port by the first of the keys that the file has."""
    settings = read_properties(file)
    value = next((settings[key] for key in keys if key in settings), "")
    word = value.split(",")[0].rpartition(":")[2]
    if not word.isdigit():
        raise CommandError(f"{file} has no port: write {keys[0]}=..., as it was at first")
    return int(word)


def _protocol(secure: SecureFiles | None) -> str:
    return "PLAINTEXT" if secure is None else "SASL_SSL"


def _refuse_other_security(directory: Path, secure: SecureFiles | None) -> None:
    """A cluster that exists goes on as it was made; to open or close it by accident is worse."""
    first = directory / "config" / "server-0.properties"
    if not first.exists():
        return
    settings = read_properties(first)
    was_secure = settings.get("listeners", "").startswith("SASL_SSL:")
    if was_secure and secure is None:
        folder = Path(settings.get("ssl.keystore.location", "")).parent
        raise CommandError(f"{directory} holds a secured cluster: say --secure {folder}")
    if not was_secure and secure is not None:
        raise CommandError(
            f"{directory} holds a cluster that is not secured. Choose another --dir, or write the "
            f"settings of {secure.broker_properties} into its config files."
        )


def _write_zookeepers(cluster: ClusterFiles) -> None:
    new = [server for server in cluster.zookeepers if not server.properties.exists()]
    if not new:
        return
    ports: list[int] = []
    if len(cluster.zookeepers) > 1:
        after = max(server.port for server in cluster.zookeepers) + 1
        ports = free_ports(after, 2 * len(cluster.zookeepers))
    for server in new:
        write_private(server.properties, zookeeper_text(cluster, server, ports))


def _refuse_other_ensemble(directory: Path, names: Sequence[str]) -> None:
    """An ensemble cannot grow or shrink by starting it with another number."""
    present = sorted(file.stem for file in (directory / "config").glob("zookeeper*.properties"))
    if present and present != sorted(names):
        count = len(present)
        raise CommandError(
            f"{directory} holds a cluster with {count} ZooKeeper{'' if count == 1 else 's'}: say "
            f"--zookeepers {count}, or choose another --dir."
        )


def _refuse_override(file: Path, overrides: Mapping[str, str]) -> None:
    settings = read_properties(file)
    for name, value in overrides.items():
        if settings.get(name) != value:
            raise CommandError(
                f"{file} exists already, without {name}={value}. Change it there, or choose "
                "another --dir."
            )


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"{directory} cannot be made: {error.strerror}.") from error
