"""Where a service listens and whom it lets in: the settings that all services share.

Listeners are `http` or `https`; `ssl.*` has Kafka's names, with Confluent's words for client
certificates; HTTP Basic is what `authentication.*` asks for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from penstock.config.listeners import split_address
from penstock.errors import ConfigError
from penstock.security.tls.contexts import TlsSettings

LISTENER_FORM: Final = "http://host:port or https://host:port"
ACCESS_DEFAULTS: Final = {
    "authentication.method": "NONE",
    "authentication.realm": "",
    "authentication.roles": "*",
    "authentication.skip.paths": "",
    "authentication.users.file": "",
}
TLS_SETTINGS: Final = frozenset(
    {
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.client.authentication",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        *(
            f"ssl.keystore.{word}"
            for word in ("certificate.chain", "key", "location", "password", "type")
        ),
        *(f"ssl.truststore.{word}" for word in ("certificates", "location", "password", "type")),
    }
)


class HttpListener(NamedTuple):
    """One place to listen on."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicSettings:
    """HTTP Basic, where it is asked for."""

    users_file: Path
    realm: str
    roles: tuple[str, ...]
    open_paths: tuple[str, ...]


def read_listeners(text: str) -> tuple[HttpListener, ...]:
    """What `listeners` says; ConfigError if it cannot be understood."""
    found = []
    for entry in _words(text):
        scheme, host, port = split_address("listeners", entry, LISTENER_FORM)
        if scheme.lower() not in ("http", "https"):
            raise ConfigError(f"listeners has {entry}: write {LISTENER_FORM}")
        found.append(HttpListener(scheme.lower(), host, port))
    if not found:
        raise ConfigError(f"listeners is empty: write {LISTENER_FORM}")
    return tuple(found)


def read_tls(chosen: Mapping[str, str]) -> TlsSettings | None:
    """What `ssl.*` says; None if it says nothing."""
    given = {name: text for name, text in chosen.items() if name.startswith("ssl.") and text}
    if "ssl.client.authentication" in given:  # Confluent's name for it, with words in capitals.
        given["ssl.client.auth"] = given.pop("ssl.client.authentication").lower()
    if given.get("ssl.client.auth") in ("true", "false"):
        given["ssl.client.auth"] = "required" if given["ssl.client.auth"] == "true" else "none"
    return TlsSettings.read(given) if given else None


def read_basic(chosen: Mapping[str, str], realm: str) -> BasicSettings | None:
    """What `authentication.*` says; `realm` is its name where none is given."""
    method = chosen["authentication.method"].upper()
    if method == "NONE":
        return None
    if method != "BASIC":
        raise ConfigError(f"authentication.method={method} is neither NONE nor BASIC")
    if not chosen["authentication.users.file"]:
        raise ConfigError("authentication.users.file is missing")
    return BasicSettings(
        users_file=Path(chosen["authentication.users.file"]),
        realm=chosen["authentication.realm"] or realm,
        roles=_words(chosen["authentication.roles"]) or ("*",),
        open_paths=_words(chosen["authentication.skip.paths"]),
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))
