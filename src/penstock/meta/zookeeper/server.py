"""The real ZooKeeper server as a command line: which jars, which options, which file.

The jars are those inside the pyspark package, so nothing is downloaded. A classic
zookeeper.properties is taken as it stands; what it leaves open gets a safe value: the server
listens to this machine alone, without its web page. Starting the process is left to the caller.
"""

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.config.properties import format_properties
from penstock.errors import ConfigError
from penstock.java import find_java_home
from penstock.security.private_files import write_private

MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
CLIENT_PORT = 2181
# The ports for clients, each with the setting of where it listens; TLS needs Netty.
_PORTS = {"clientPort": "clientPortAddress", "secureClientPort": "secureClientPortAddress"}
_SECURE_DEFAULTS = {
    "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
    "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
    # By itself this ZooKeeper speaks TLS 1.3 alone, and Kafka's clients by theirs TLS 1.2 alone.
    "ssl.enabledProtocols": "TLSv1.2,TLSv1.3",
}
LOOPBACK = "127.0.0.1"
# A cluster's largest transaction and its largest read both stay far below this; ZooKeeper's own
# limit of 1 MB does not hold the creation of a topic with thousands of partitions.
JUTE_BYTES_MAX = 8 << 20

_JARS = (
    "zookeeper-*.jar",
    "netty-*.jar",
    "slf4j-api-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "commons-cli-*.jar",
    "commons-io-*.jar",
)
# Natives of other systems only make the class path longer.
_UNWANTED = re.compile(
    r"^netty-(all|tcnative|transport-native-(epoll|kqueue)|codec-(dns|http|socks))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLaunch:
    """What to execute, and what the settings came to."""

    command: tuple[str, ...]
    file: Path  # The settings as the server reads them.
    data_dir: Path
    address: str | None  # Where clients reach it; None: each server.N line says that.
    is_loopback_by_default: bool  # Nobody said where to listen.


def prepare(
    settings: Mapping[str, str], *, my_id: int | None = None, heap: str = "256m"
) -> ServerLaunch:
    """Make the data directory and the file the server reads, and build the command line."""
    java = find_java_home(needed_by="ZooKeeper") / "bin" / "java"
    jars = find_jars()
    data_dir = _data_dir(settings)
    completed = _completed(settings)
    file = data_dir / "zookeeper.properties"
    # Passwords of key stores may be in it.
    write_private(file, format_properties(completed), may_replace=True)
    _write_my_id(data_dir, settings, my_id)
    command = [str(java), *_java_options(settings, heap), "-cp", ":".join(map(str, jars))]
    return ServerLaunch(
        command=(*command, MAIN_CLASS, str(file)),
        file=file,
        data_dir=data_dir,
        address=_address(completed),
        is_loopback_by_default=any(
            port in settings and address not in settings for port, address in _PORTS.items()
        ),
    )


def find_jars() -> list[Path]:
    """ZooKeeper and what it needs, from pyspark's folder; pyspark itself is not imported."""
    spec = importlib.util.find_spec("pyspark")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    jars = Path(folders[0]) / "jars" if folders else None
    if jars is None or not list(jars.glob("zookeeper-[0-9]*.jar")):
        where = f"{jars} has none" if jars else "pyspark is not installed"
        raise ConfigError(
            f"ZooKeeper's jars come inside the pyspark package, but {where}. "
            "Install it with: pip install pyspark"
        )
    found = [jar for pattern in _JARS for jar in sorted(jars.glob(pattern))]
    return [jar for jar in found if not _UNWANTED.match(jar.name)]


def _java_options(settings: Mapping[str, str], heap: str) -> list[str]:
    options = [
        f"-Xmx{heap}",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Djute.maxbuffer={JUTE_BYTES_MAX}",
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
    ]
    if "admin.enableServer" not in settings:
        options.append("-Dzookeeper.admin.enableServer=false")
    return options


def _data_dir(settings: Mapping[str, str]) -> Path:
    named = settings.get("dataDir", "").strip()
    if not named:
        raise ConfigError(
            "ZooKeeper's settings have no dataDir: write dataDir=/some/directory, where it keeps "
            "its snapshots and its log"
        )
    directory = Path(named)
    for path in (directory, Path(settings.get("dataLogDir", "").strip() or named)):
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"ZooKeeper's directory {path} cannot be made: {error}") from error
    return directory


def _completed(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings, where to listen if they name a port but no address, and what TLS needs."""
    completed = dict(settings)
    for port, address in _PORTS.items():
        if port in settings:
            completed.setdefault(address, LOOPBACK)
    if "secureClientPort" in settings:
        completed = _SECURE_DEFAULTS | completed
    return completed


def _write_my_id(data_dir: Path, settings: Mapping[str, str], my_id: int | None) -> None:
    servers = {key for key in settings if key.startswith("server.")}
    file = data_dir / "myid"
    if my_id is not None:
        if f"server.{my_id}" not in servers:
            raise ConfigError(f"--myid is {my_id}, but the settings have no server.{my_id}")
        file.write_text(f"{my_id}\n")
    elif len(servers) > 1 and not file.exists():
        raise ConfigError(
            f"The settings name {len(servers)} servers, but {file} does not say which of them this "
            "is: write its number there, or start with --myid"
        )


def _address(settings: Mapping[str, str]) -> str | None:
    for port, address in _PORTS.items():
        if settings.get(port):
            return f"{settings[address]}:{settings[port]}"
    return None
