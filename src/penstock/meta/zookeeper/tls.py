"""TLS to ZooKeeper: what Kafka's `zookeeper.ssl.*` says, and kazoo's sockets made to speak it.

kazoo has TLS of its own, but it takes PEM files alone, keeps no limit on versions, and sleeps on
bytes that were decrypted and not read yet. Here a context comes from the stores that brokers use,
and `select` knows of such bytes.
"""

import socket
import ssl
from collections.abc import Mapping
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler

from penstock.errors import ConfigError
from penstock.security.tls.contexts import TlsSettings
from penstock.security.tls.stores import JKS, PEM, PKCS12, TYPES, StoreSettings

ENABLE: Final = "zookeeper.ssl.client.enable"
SOCKET: Final = "zookeeper.clientCnxnSocket"
KEY_STORE: Final = "zookeeper.ssl.keystore"
TRUST_STORE: Final = "zookeeper.ssl.truststore"
_NETTY: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"
_ALGORITHM: Final = "zookeeper.ssl.endpoint.identification.algorithm"
_REVOCATION: Final = ("zookeeper.ssl.crl.enable", "zookeeper.ssl.ocsp.enable")
# By the ending of a file's name, where no type is given, as ZooKeeper finds it out.
_ENDINGS: Final = {".jks": JKS, ".pem": PEM, ".p12": PKCS12}
_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
_PROTOCOL: Final = "TLSv1.2"  # Kafka's default: the one version that is offered.

# What a file of --zk-tls-config-file may say; all else in it is ignored, as Kafka's tools do.
NAMES: Final = (
    ENABLE,
    SOCKET,
    *(f"{store}.{key}" for store in (KEY_STORE, TRUST_STORE) for key in ("location", "password")),
    *(f"{store}.type" for store in (KEY_STORE, TRUST_STORE)),
    "zookeeper.ssl.protocol",
    "zookeeper.ssl.enabled.protocols",
    "zookeeper.ssl.cipher.suites",
    _ALGORITHM,
    *_REVOCATION,
)


def zookeeper_tls(settings: Mapping[str, object]) -> TlsSettings | None:
    """How to come to ZooKeeper; None: without TLS. ConfigError names what cannot be used."""
    if not _is_true(settings, ENABLE):
        return None
    for name in _REVOCATION:
        if _is_true(settings, name):
            raise ConfigError(
                f"{name} is true, but nobody is asked here whether a certificate was revoked: "
                "remove it to believe all that the trust store's authorities have signed"
            )
    if _text(settings, SOCKET) not in (None, _NETTY):
        raise ConfigError(f"{SOCKET} is {settings[SOCKET]}, but only {_NETTY} speaks TLS")
    return TlsSettings(
        key_store=_store(settings, KEY_STORE),
        trust_store=_store(settings, TRUST_STORE),
        protocols=_protocols(settings),
        cipher_suites=_list(settings.get("zookeeper.ssl.cipher.suites")),
        client_auth="none",
        checks_host=_checks_host(settings),
    )


class TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types.
    """How kazoo connects and waits, with TLS where there is a context."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._context = context

    def create_connection(self, *args: Any, **options: Any) -> socket.socket:
        made: socket.socket = super().create_connection(*args, **options)
        if self._context is None:
            return made
        try:
            return self._context.wrap_socket(made, server_hostname=options["hostname"])
        except BaseException:
            made.close()
            raise

    def select(self, *args: Any, **options: Any) -> Any:
        """As kazoo's; what TLS has decrypted already raises no readiness, but is there to read."""
        decrypted = [one for one in args[0] if isinstance(one, ssl.SSLSocket) and one.pending()]
        if not decrypted:
            return super().select(*args, **options)
        readable, *others = super().select(*args[:3], 0)
        return [readable + [one for one in decrypted if one not in readable], *others]


def _store(settings: Mapping[str, object], name: str) -> StoreSettings:
    location = _text(settings, f"{name}.location")
    password = _text(settings, f"{name}.password")
    kind = _type(settings, name, location)
    return StoreSettings(
        name=name,
        type=kind,
        location=location,
        # In a PEM file the key alone can have a password.
        password=None if kind == PEM else password or "",
        key_password=password if kind == PEM else None,
    )


def _type(settings: Mapping[str, object], name: str, location: str | None) -> str:
    given = _text(settings, f"{name}.type")
    if given is None:
        found = next((k for end, k in _ENDINGS.items() if (location or "").endswith(end)), None)
        if location is not None and found is None:
            raise ConfigError(f"{name}.location={location}: write its {name}.type, too")
        return found or JKS
    if given.upper() not in TYPES:
        raise ConfigError(f"{name}.type={given} is not one of {', '.join(TYPES)}")
    return given.upper()


def _protocols(settings: Mapping[str, object]) -> tuple[str, ...]:
    key = "zookeeper.ssl.enabled.protocols"
    found = _list(settings.get(key))
    if not found:
        key = "zookeeper.ssl.protocol"
        found = (_text(settings, key) or _PROTOCOL,)
    unknown = [name for name in found if name not in _VERSIONS]
    if unknown:
        raise ConfigError(f"{key}={unknown[0]} is not one of {', '.join(_VERSIONS)}")
    return found


def _checks_host(settings: Mapping[str, object]) -> bool:
    algorithm = settings.get(_ALGORITHM, "HTTPS")
    text = "" if algorithm is None else str(algorithm).strip().lower()
    if text not in ("https", ""):
        raise ConfigError(f"{_ALGORITHM}={algorithm} is neither HTTPS nor empty")
    return text == "https"


def _is_true(settings: Mapping[str, object], key: str) -> bool:
    value = settings.get(key, False)
    return value is True or str(value).strip().lower() == "true"


def _text(settings: Mapping[str, object], key: str) -> str | None:
    value = settings.get(key)
    return str(value) if value not in (None, "") else None


def _list(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    parts = value.split(",") if isinstance(value, str) else value
    assert isinstance(parts, list | tuple)
    return tuple(str(part).strip() for part in parts if str(part).strip())
