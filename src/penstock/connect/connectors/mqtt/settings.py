"""What both MQTT connectors are told: where the server is, who asks, how long to wait."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from penstock.config.settings import Password
from penstock.connect.connectors.wiring.tls import TlsNames
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config
from penstock.connect.plugins.validators import (
    AllOf,
    AtLeast,
    Judged,
    NonEmptyList,
    OneOfWords,
)
from penstock.errors import ConfigError

LIBRARIES = {"paho.mqtt": "paho-mqtt"}
_PORTS = {"tcp": 1883, "mqtt": 1883, "ssl": 8883, "mqtts": 8883}
_TLS = TlsNames(
    trust="mqtt.ssl.trust.store.path",
    trust_password="mqtt.ssl.trust.store.password",
    key="mqtt.ssl.key.store.path",
    key_store_password="mqtt.ssl.key.store.password",
    key_password="mqtt.ssl.key.password",
)


def _wrong_server(uris: list[str] | None) -> str | None:
    for uri in uris or []:
        try:
            parts = urlsplit(uri)
            port = parts.port
        except ValueError as error:
            return f"{uri}: {error}"
        if parts.scheme not in _PORTS or not parts.hostname or port == 0:
            return f"{uri} is not of the form tcp://host:1883 or ssl://host:8883"
    return None


CONNECTION = (
    ConfigDef(
        ConfigEntry(
            "mqtt.server.uri",
            ConfigType.LIST,
            NO_DEFAULT,
            Importance.HIGH,
            "Servers, tried in turn: tcp://host:1883 or ssl://host:8883.",
            validator=AllOf((NonEmptyList(), Judged(_wrong_server, "URIs of MQTT servers"))),
        ),
        ConfigEntry(
            "mqtt.client.id",
            ConfigType.STRING,
            "",
            Importance.MEDIUM,
            "The session's name, followed by the number of the task. Empty: the connector's name.",
        ),
        ConfigEntry(
            "mqtt.version",
            ConfigType.STRING,
            "3.1.1",
            Importance.LOW,
            "The version of the protocol.",
            validator=OneOfWords(("3.1.1", "5")),
        ),
        ConfigEntry("mqtt.username", ConfigType.STRING, "", Importance.HIGH, "Who asks."),
        ConfigEntry("mqtt.password", ConfigType.PASSWORD, Password(""), Importance.HIGH, "Secret."),
        ConfigEntry(
            "mqtt.connect.timeout.seconds",
            ConfigType.INT,
            30,
            Importance.LOW,
            "How long a server may be out of reach before the task fails.",
            validator=AtLeast(1),
        ),
        ConfigEntry(
            "mqtt.keepalive.interval.seconds",
            ConfigType.INT,
            60,
            Importance.LOW,
            "How often the connection is tried when nothing is sent.",
            validator=AtLeast(5),
        ),
    )
    + _TLS.entries()
)


def check_tls(checked: CheckedConfig, config: Config) -> CheckedConfig:
    """Stores that cannot be opened are told with the rest."""
    if checked.errors():
        return checked
    try:
        MqttSettings.of(CONNECTION.parse(config), config)
    except ConfigError as error:
        return checked.with_error(_TLS.trust, str(error))
    return checked


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttServer:
    """Where one server listens."""

    host: str
    port: int
    is_secure: bool

    @classmethod
    def of(cls, uri: str) -> "MqttServer":
        """A URI that was checked."""
        parts = urlsplit(uri)
        return cls(
            host=parts.hostname or "",
            port=parts.port or _PORTS[parts.scheme],
            is_secure=parts.scheme in ("ssl", "mqtts"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttSettings:
    """How to reach a server; `tls` is an SSLContext, None: no server is called by ssl://."""

    servers: tuple[MqttServer, ...]
    client_id: str
    version: str
    username: str
    password: str
    timeout_s: int
    keepalive_s: int
    tls: Any

    @classmethod
    def of(cls, parsed: Mapping[str, Any], config: Config) -> "MqttSettings":
        """From a task's configuration."""
        servers = tuple(MqttServer.of(uri) for uri in parsed["mqtt.server.uri"])
        named = parsed["mqtt.client.id"] or config.get("name", "penstock-connect")
        return cls(
            servers=servers,
            client_id=f"{named}-{config.get('penstock.task', '0')}",
            version=parsed["mqtt.version"],
            username=parsed["mqtt.username"],
            password=str.__str__(parsed["mqtt.password"]),
            timeout_s=parsed["mqtt.connect.timeout.seconds"],
            keepalive_s=parsed["mqtt.keepalive.interval.seconds"],
            tls=_TLS.context(parsed) if any(one.is_secure for one in servers) else None,
        )
