"""How both Redis connectors reach their server, and what they call its errors."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.config.settings import Password
from penstock.connect.connectors.wiring.reach import ServerReach
from penstock.connect.connectors.wiring.tls import TlsNames
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.plugins.config_def import (
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config
from penstock.connect.plugins.validators import AtLeast, Judged
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from redis import Redis

LIBRARIES = {"redis": "redis"}
_TLS = TlsNames.below("redis.")


def _wrong_uri(uri: str | None) -> str | None:
    try:
        parts = urlsplit(uri or "")
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("redis", "rediss") or not parts.hostname or port == 0:
        return "it is not of the form redis://host:6379/0 or rediss://host:6379/0"
    database = parts.path.strip("/")
    return None if not database or database.isdigit() else f"{database} is no number of a database"


CONNECTION = (
    ConfigDef(
        ConfigEntry(
            "redis.uri",
            ConfigType.STRING,
            "redis://localhost:6379",
            Importance.HIGH,
            "The server, and the number of its database; rediss:// speaks TLS.",
            validator=Judged(_wrong_uri, "a URI of Redis"),
        ),
        ConfigEntry("redis.username", ConfigType.STRING, "", Importance.MEDIUM, "Who asks."),
        ConfigEntry("redis.password", ConfigType.PASSWORD, Password(""), Importance.HIGH, "Secret"),
        ConfigEntry(
            "redis.timeout",
            ConfigType.INT,
            30,
            Importance.LOW,
            "How many seconds the server may be out of reach before the task fails.",
            validator=AtLeast(1),
        ),
    )
    + _TLS.entries()
)


def check_connection(checked: CheckedConfig, config: Config) -> CheckedConfig:
    """Stores that cannot be opened are told with the rest."""
    if checked.errors():
        return checked
    parsed = CONNECTION.parse(config)
    try:
        if parsed[_TLS.trust] or parsed[_TLS.key]:
            _TLS.context(parsed)
    except ConfigError as error:
        return checked.with_error(_TLS.trust, str(error))
    return checked


class RedisServer:
    """A server, with its errors as Connect's."""

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        self._parsed = parsed
        self._reach = ServerReach(f"Redis at {parsed['redis.uri']}", parsed["redis.timeout"])
        self.client = self._made()

    def close(self) -> None:
        """End its connections."""
        self.client.close()

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Around calls: out of reach is tried again for a while, refused ends the task."""
        from redis import exceptions as told

        try:
            yield
        except (told.AuthenticationError, told.AuthorizationError) as error:
            raise ConnectError(f"Redis refuses us: {error}") from error
        except (told.BusyLoadingError, told.ConnectionError, told.TimeoutError) as error:
            raise self._reach.failed(error) from error
        except told.RedisError as error:
            raise ConnectError(f"Redis refuses a command: {error}") from error
        self._reach.answered()

    def _made(self) -> "Redis":
        from redis import Connection, ConnectionPool, Redis

        parts = urlsplit(self._parsed["redis.uri"])
        settings: dict[str, Any] = {
            "host": parts.hostname,
            "port": parts.port or 6379,
            "db": int(parts.path.strip("/") or 0),
            "username": self._parsed["redis.username"] or None,
            "password": str.__str__(self._parsed["redis.password"]) or None,
            "socket_timeout": float(self._parsed["redis.timeout"]),
            "socket_connect_timeout": float(self._parsed["redis.timeout"]),
        }
        kind = Connection if parts.scheme == "redis" else _tls_connection(self._parsed)
        return Redis(connection_pool=ConnectionPool(connection_class=kind, **settings))


def _tls_connection(parsed: Mapping[str, Any]) -> Any:
    """A connection over our own TLS context, which reads Java's stores too."""
    from redis import Connection

    context = _TLS.context(parsed)

    class Secured(Connection):
        """The socket of a connection, wrapped."""

        def _connect(self) -> Any:
            sock = super()._connect()  # type: ignore[no-untyped-call]
            return context.wrap_socket(sock, server_hostname=str(self.host))

    return Secured
