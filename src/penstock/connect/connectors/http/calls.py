"""One HTTP server called again and again over a connection that is kept."""

import base64
import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from penstock.config.settings import Password
from penstock.connect.connectors.http.status_codes import StatusRanges, wrong_ranges
from penstock.connect.connectors.wiring.tls import TlsNames
from penstock.connect.plugins.config_def import (
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config
from penstock.connect.plugins.validators import AtLeast, Judged, OneOfWords
from penstock.errors import ConfigError, PenstockError
from penstock.http.whole_answers import read_whole

_TLS = TlsNames.below("https.")
_SHOWN_BYTES = 300

CALLING = (
    ConfigDef(
        ConfigEntry(
            "headers",
            ConfigType.STRING,
            "",
            Importance.MEDIUM,
            "Headers of every request: Name:value, with header.separator between them.",
        ),
        ConfigEntry("header.separator", ConfigType.STRING, "|", Importance.LOW, "See headers."),
        ConfigEntry(
            "auth.type",
            ConfigType.STRING,
            "NONE",
            Importance.HIGH,
            "How we show who we are.",
            validator=OneOfWords(("NONE", "BASIC", "BEARER"), any_case=True),
        ),
        ConfigEntry("connection.user", ConfigType.STRING, "", Importance.HIGH, "For BASIC."),
        ConfigEntry(
            "connection.password", ConfigType.PASSWORD, Password(""), Importance.HIGH, "For BASIC."
        ),
        ConfigEntry(
            "bearer.token", ConfigType.PASSWORD, Password(""), Importance.HIGH, "For BEARER."
        ),
        ConfigEntry(
            "http.connect.timeout.ms",
            ConfigType.INT,
            30_000,
            Importance.LOW,
            "How long a connection may take.",
            validator=AtLeast(1),
        ),
        ConfigEntry(
            "http.request.timeout.ms",
            ConfigType.INT,
            30_000,
            Importance.LOW,
            "How long the server may be silent.",
            validator=AtLeast(1),
        ),
        ConfigEntry(
            "max.retries",
            ConfigType.INT,
            10,
            Importance.MEDIUM,
            "How often a request that failed is tried again before the task fails.",
            validator=AtLeast(0),
        ),
        ConfigEntry(
            "retry.backoff.ms",
            ConfigType.INT,
            3000,
            Importance.MEDIUM,
            "The pause before a second try.",
            validator=AtLeast(0),
        ),
        ConfigEntry(
            "retry.on.status.codes",
            ConfigType.STRING,
            "408,429,500-",
            Importance.MEDIUM,
            "Answers after which the same request is made again: codes and ranges of them.",
            validator=Judged(wrong_ranges, "status codes and ranges of them"),
        ),
    )
    + _TLS.entries()
)


class ServerAway(PenstockError):
    """No answer: the server is out of reach, or went away in the middle."""


def wrong_url(url: str | None) -> str | None:
    """What is wrong with a URL; None: nothing."""
    try:
        parts = urlsplit(url or "")
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "it is not of the form http://host/path or https://host/path"
    return None


def check_calling(checked: CheckedConfig, config: Config) -> CheckedConfig:
    """Headers, credentials and stores that do not go together."""
    if checked.errors():
        return checked
    parsed = CALLING.parse(config)
    missing = {
        "BASIC": [name for name in ("connection.user",) if not parsed[name]],
        "BEARER": [name for name in ("bearer.token",) if not parsed[name]],
    }
    for name in missing.get(parsed["auth.type"].upper(), []):
        checked = checked.with_error(name, f"auth.type={parsed['auth.type']} needs it.")
    has_stores = parsed[_TLS.trust] or parsed[_TLS.key]
    for name, make in (("headers", _headers), *([(_TLS.trust, _TLS.context)] * bool(has_stores))):
        try:
            make(parsed)
        except ConfigError as error:
            checked = checked.with_error(name, str(error))
    return checked


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """What a server said."""

    status: int
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether it did what was asked."""
        return 200 <= self.status < 300

    @property
    def shown(self) -> str:
        """For a message: the status and the beginning of the body."""
        return f"{self.status} {self.body[:_SHOWN_BYTES].decode(errors='replace')}".strip()


class HttpCaller:
    """Makes requests, one at a time; the connection to the last server is kept."""

    def __init__(self, parsed: Mapping[str, Any], *, body_bytes_max: int) -> None:
        self.headers = _headers(parsed)
        self.retried = StatusRanges.parse(parsed["retry.on.status.codes"])
        self.retries_max: int = parsed["max.retries"]
        self.backoff_ms: int = parsed["retry.backoff.ms"]
        self._connect_s = parsed["http.connect.timeout.ms"] / 1000
        self._request_s = parsed["http.request.timeout.ms"] / 1000
        self._parsed = parsed
        self._tls: ssl.SSLContext | None = None  # None: no https was called yet.
        self._body_bytes_max = body_bytes_max
        self._connection: http.client.HTTPConnection | None = None
        self._server = ("", "")

    def call(self, method: str, url: str, body: bytes | None, content_type: str) -> HttpAnswer:
        """The answer of a server; ServerAway where there is none."""
        is_kept = self._connection is not None
        try:
            return self._asked(method, url, body, content_type)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if not is_kept or isinstance(error, TimeoutError):
                raise ServerAway(f"{method} {url}: {error or type(error).__name__}") from error
        try:  # It had closed a connection that was idle.
            return self._asked(method, url, body, content_type)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise ServerAway(f"{method} {url}: {error or type(error).__name__}") from error

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _asked(self, method: str, url: str, body: bytes | None, content_type: str) -> HttpAnswer:
        parts = urlsplit(url)
        connection = self._to(parts.scheme, parts.netloc)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = dict(self.headers)
        if body is not None:
            headers.setdefault("Content-Type", content_type)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return HttpAnswer(status=answer.status, body=read_whole(answer, self._body_bytes_max))

    def _to(self, scheme: str, place: str) -> http.client.HTTPConnection:
        if self._connection is not None and self._server == (scheme, place):
            return self._connection
        self.close()
        if scheme == "https":
            self._tls = self._tls or _TLS.context(self._parsed)
            self._connection = http.client.HTTPSConnection(
                place, timeout=self._connect_s, context=self._tls
            )
        else:
            self._connection = http.client.HTTPConnection(place, timeout=self._connect_s)
        self._connection.connect()
        self._connection.sock.settimeout(self._request_s)
        self._server = (scheme, place)
        return self._connection


def _headers(parsed: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for one in filter(None, parsed["headers"].split(parsed["header.separator"] or "|")):
        name, colon, value = one.partition(":")
        if not colon or not name.strip() or "\n" in one or "\r" in one:
            raise ConfigError(f"{one!r} is no header: Name:value is one")
        found[name.strip()] = value.strip()
    credentials = _credentials(parsed)
    return found | ({"Authorization": credentials} if credentials else {})


def _credentials(parsed: Mapping[str, Any]) -> str:
    match parsed["auth.type"].upper():
        case "BASIC":
            pair = f"{parsed['connection.user']}:{str.__str__(parsed['connection.password'])}"
            return f"Basic {base64.b64encode(pair.encode()).decode()}"
        case "BEARER":
            return f"Bearer {str.__str__(parsed['bearer.token'])}"
    return ""
