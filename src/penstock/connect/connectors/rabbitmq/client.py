"""A channel of a RabbitMQ server that is opened again when it was lost.

pika's blocking connection is used by one thread alone, the task's own: nothing happens between two
calls. A server that heard nothing for two heartbeats, as in a long pause, hangs up, and the next
call opens a new connection.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

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
from penstock.connect.plugins.validators import AtLeast, NonEmptyText, OneOfWords, WithinRange
from penstock.errors import ConfigError

LIBRARIES = {"pika": "pika"}
_TLS = TlsNames.below("rabbitmq.https.")

CONNECTION = (
    ConfigDef(
        ConfigEntry(
            "rabbitmq.host",
            ConfigType.STRING,
            "localhost",
            Importance.HIGH,
            "The server.",
            validator=NonEmptyText(),
        ),
        ConfigEntry(
            "rabbitmq.port",
            ConfigType.INT,
            5672,
            Importance.HIGH,
            "Its port.",
            validator=WithinRange(1, 65_535),
        ),
        ConfigEntry("rabbitmq.username", ConfigType.STRING, "guest", Importance.HIGH, "Who asks."),
        ConfigEntry(
            "rabbitmq.password", ConfigType.PASSWORD, Password("guest"), Importance.HIGH, "Secret."
        ),
        ConfigEntry("rabbitmq.virtual.host", ConfigType.STRING, "/", Importance.HIGH, "Where."),
        ConfigEntry(
            "rabbitmq.security.protocol",
            ConfigType.STRING,
            "PLAINTEXT",
            Importance.MEDIUM,
            "PLAINTEXT or SSL.",
            validator=OneOfWords(("PLAINTEXT", "SSL"), any_case=True),
        ),
        ConfigEntry(
            "rabbitmq.connection.timeout.ms",
            ConfigType.INT,
            30_000,
            Importance.LOW,
            "How long the server may be out of reach before the task fails.",
            validator=AtLeast(1),
        ),
        ConfigEntry(
            "rabbitmq.requested.heartbeat.seconds",
            ConfigType.INT,
            60,
            Importance.LOW,
            "How often both sides show that they are there. 0: never.",
            validator=AtLeast(0),
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


class RabbitServer:
    """A server with one channel, and its errors as Connect's."""

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        self._parsed = parsed
        place = f"{parsed['rabbitmq.host']}:{parsed['rabbitmq.port']}"
        self._reach = ServerReach(
            f"RabbitMQ at {place}", parsed["rabbitmq.connection.timeout.ms"] / 1000
        )
        self._connection: Any = None
        self._channel: Any = None
        self.connection = 0  # Counts up with each that is made.

    @property
    def is_open(self) -> bool:
        """Whether there is a channel to be used."""
        return self._channel is not None and bool(self._channel.is_open)

    @property
    def channel(self) -> Any:
        """The channel that is open."""
        assert self._channel is not None, "it is not open"
        return self._channel

    def open(self) -> None:
        """Connect, if there is no channel."""
        import pika

        if self.is_open:
            return
        self.close()
        with self.asked():
            self._connection = pika.BlockingConnection(self._parameters())
            self._channel = self._connection.channel()
        self.connection += 1

    def serve(self, seconds: float) -> None:
        """Let messages come in, for so long at most."""
        with self.asked():
            self._connection.process_data_events(time_limit=seconds)

    def close(self) -> None:
        """Hang up; what was not acknowledged goes back into its queue."""
        from pika.exceptions import AMQPError

        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None and connection.is_open:
            with suppress(AMQPError, OSError):
                connection.close()

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Around calls: out of reach is tried again for a while, refused ends the task."""
        from pika import exceptions

        refused = (
            exceptions.ProbableAuthenticationError,
            exceptions.ProbableAccessDeniedError,
            exceptions.AuthenticationError,
            exceptions.ChannelClosedByBroker,
        )
        try:
            yield
        except refused as error:
            self.close()
            raise ConnectError(f"RabbitMQ refuses us: {error!r}") from error
        except (exceptions.AMQPConnectionError, exceptions.AMQPChannelError, OSError) as error:
            self.close()
            raise self._reach.failed(error) from error
        self._reach.answered()

    def _parameters(self) -> Any:
        import pika

        parsed = self._parsed
        secured = parsed["rabbitmq.security.protocol"].upper() == "SSL"
        host = parsed["rabbitmq.host"]
        return pika.ConnectionParameters(
            host=host,
            port=parsed["rabbitmq.port"],
            virtual_host=parsed["rabbitmq.virtual.host"],
            credentials=pika.PlainCredentials(
                parsed["rabbitmq.username"], str.__str__(parsed["rabbitmq.password"])
            ),
            heartbeat=parsed["rabbitmq.requested.heartbeat.seconds"],
            socket_timeout=parsed["rabbitmq.connection.timeout.ms"] / 1000,
            blocked_connection_timeout=parsed["rabbitmq.connection.timeout.ms"] / 1000,
            ssl_options=pika.SSLOptions(_TLS.context(parsed), host) if secured else None,
        )
