"""Where a service listens and whom it lets in: the settings that all services share.

Listeners are `http` or `https`; `ssl.*` has Kafka's names, with Confluent's words for client
certificates; HTTP Basic is what `authentication.*` asks for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from penstock.config.listeners import split_address
from penstock.errors import ConfigError
from penstock.security.sasl.web_tokens import TokenRules
from penstock.security.tls.contexts import TlsSettings

LISTENER_FORM: Final = "http://host:port or https://host:port"
ACCESS_DEFAULTS: Final = {
    "authentication.method": "NONE",
    "authentication.realm": "",
    "authentication.roles": "*",
    "authentication.skip.paths": "",
    "authentication.users.file": "",
    "oauthbearer.clock.skew.seconds": "30",
    "oauthbearer.expected.audience": "",
    "oauthbearer.expected.issuer": "",
    "oauthbearer.jwks.endpoint.refresh.ms": "3600000",
    "oauthbearer.jwks.endpoint.url": "",
    "oauthbearer.scope.claim.name": "scope",
    "oauthbearer.sub.claim.name": "sub",
}
_DIGITS_MAX: Final = 12
_BEARER: Final = ("BEARER", "OAUTHBEARER")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerSettings:
    """Bearer tokens, where they are asked for."""

    keys_url: str
    rules: TokenRules
    realm: str
    refresh_s: float
    open_paths: tuple[str, ...]


AccessSettings: TypeAlias = BasicSettings | BearerSettings


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


def read_access(chosen: Mapping[str, str], realm: str) -> AccessSettings | None:
    """Who is let in; None: everybody. `realm` is its name where the settings give none."""
    return read_bearer(chosen, realm) or read_basic(chosen, realm)


def read_basic(chosen: Mapping[str, str], realm: str) -> BasicSettings | None:
    """What `authentication.*` says; `realm` is its name where none is given."""
    method = chosen["authentication.method"].upper()
    if method == "NONE" or method in _BEARER:
        return None
    if method != "BASIC":
        raise ConfigError(f"authentication.method={method} is none of NONE, BASIC and BEARER")
    if not chosen["authentication.users.file"]:
        raise ConfigError("authentication.users.file is missing")
    return BasicSettings(
        users_file=Path(chosen["authentication.users.file"]),
        realm=chosen["authentication.realm"] or realm,
        roles=_words(chosen["authentication.roles"]) or ("*",),
        open_paths=_words(chosen["authentication.skip.paths"]),
    )


def read_bearer(chosen: Mapping[str, str], realm: str) -> BearerSettings | None:
    """What `authentication.*` and `oauthbearer.*` say; as `sasl.oauthbearer.*` of a broker."""
    if chosen["authentication.method"].upper() not in _BEARER:
        return None
    url = chosen["oauthbearer.jwks.endpoint.url"]
    if not url:
        raise ConfigError(
            "oauthbearer.jwks.endpoint.url is missing: without keys nobody is believed"
        )
    return BearerSettings(
        keys_url=url,
        rules=TokenRules(
            audiences=frozenset(_words(chosen["oauthbearer.expected.audience"])),
            issuer=chosen["oauthbearer.expected.issuer"],
            clock_skew_s=_number(chosen, "oauthbearer.clock.skew.seconds"),
            subject_claim=chosen["oauthbearer.sub.claim.name"],
            scope_claim=chosen["oauthbearer.scope.claim.name"],
        ),
        realm=chosen["authentication.realm"] or realm,
        refresh_s=_number(chosen, "oauthbearer.jwks.endpoint.refresh.ms") / 1000,
        open_paths=_words(chosen["authentication.skip.paths"]),
    )


def _number(chosen: Mapping[str, str], name: str) -> int:
    if not chosen[name].isdecimal() or len(chosen[name]) > _DIGITS_MAX:
        raise ConfigError(f"{name}={chosen[name]} is no number")
    return int(chosen[name])


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))
