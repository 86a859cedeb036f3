"""One question to a schema registry over HTTP: several addresses, credentials, tries, bounds.

What the paths mean is left to `registry_client`. A registry that is away or without a leader is
asked again, then the next one; what it refuses is told at once, with its code and its words.
"""

import base64
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from penstock.client.errors import BrokerUnreachableError
from penstock.errors import ConfigError
from penstock.schemas.errors import SchemaError

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_ACCEPTED = f"{_MEDIA_TYPE}, application/json"
_REFUSALS = (404, 409, 422)  # The registry's word on what it was asked; all else is trouble.
_ANSWER_BYTES_MAX = 64 * 1024 * 1024
_BACKOFF_S = 0.1


class RegistryUnreachable(BrokerUnreachableError):
    """No registry answered; the records are not to blame, so no policy for them applies."""


class RegistryRefused(SchemaError):
    """The registry answered that it does not have or does not want something."""

    def __init__(self, status: int, error_code: int, message: str) -> None:
        super().__init__(f"the schema registry refused: {message} (error code {error_code})")
        self.status = status
        self.error_code = error_code
        self.message = message

    def __reduce__(self) -> tuple[type["RegistryRefused"], tuple[int, int, str]]:
        return type(self), (self.status, self.error_code, self.message)


@dataclass(frozen=True, kw_only=True)
class RegistryHttp:
    """Asks the first of several registries that answers.

    Secrets written as `file:/path` or `env:NAME` are read where the question is asked, and do not
    travel with this object.
    """

    urls: tuple[str, ...]
    basic_auth: str | None = field(default=None, repr=False)  # user:password
    bearer_token: str | None = field(default=None, repr=False)
    ca_location: str | None = None  # A PEM file; None: what the system trusts.
    timeout_s: float = 10.0
    rounds: int = 3

    @classmethod
    def of(cls, urls: str, **settings: Any) -> "RegistryHttp":
        """From addresses as the setting has them, with commas between."""
        found = tuple(url.strip().rstrip("/") for url in urls.split(",") if url.strip())
        if not found:
            raise ConfigError("the schema registry needs a URL such as http://localhost:8081")
        for url in found:
            if urlsplit(url).scheme not in ("http", "https"):
                raise ConfigError(f"the schema registry's URL {url} does not begin with http")
        return cls(urls=found, **settings)

    def get(self, path: str) -> Mapping[str, Any]:
        """The answer to a GET."""
        return self._ask("GET", path, None)

    def post(self, path: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a POST that may be sent twice."""
        return self._ask("POST", path, json.dumps(document).encode())

    def ask_once(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        """The document of an answer, of whatever kind; None for an empty one.

        A registry that cannot be reached is passed over. What one has taken and not answered is
        not sent to the next: it may have been done.
        """
        sent = None if body is None else json.dumps(body).encode()
        reasons: list[str] = []
        for url in self.urls:
            try:
                content, address = self._exchange(url, method, path, sent)
                return _json(content, address) if content else None
            except _Trouble as trouble:
                reasons.append(str(trouble))
                if not trouble.is_untouched:
                    break
        raise RegistryUnreachable(f"no schema registry answers ({'; '.join(reasons)})")

    def _ask(self, method: str, path: str, body: bytes | None) -> Mapping[str, Any]:
        reasons: list[str] = []
        for tried in range(self.rounds):
            if tried:
                time.sleep(_BACKOFF_S * 2**tried)
            reasons.clear()
            for url in self.urls:
                try:
                    return self._ask_one(url, method, path, body)
                except _Trouble as trouble:
                    reasons.append(str(trouble))
        raise RegistryUnreachable(f"no schema registry answers ({'; '.join(reasons)})")

    def _ask_one(self, url: str, method: str, path: str, body: bytes | None) -> Mapping[str, Any]:
        return _document(*self._exchange(url, method, path, body))

    def _exchange(self, url: str, method: str, path: str, body: bytes | None) -> tuple[bytes, str]:
        """The bytes of an answer, and who gave it."""
        address, credentials = _without_credentials(url)
        request = self._request(address + path, method, body, credentials)
        try:
            with urlopen(request, timeout=self.timeout_s, context=self._tls(url)) as response:
                return response.read(_ANSWER_BYTES_MAX + 1), address
        except HTTPError as error:
            with error:
                raise _judged(error, address) from error
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise _Trouble(
                f"{address}: {reason}", is_untouched=isinstance(reason, ConnectionRefusedError)
            ) from error

    def _request(
        self, url: str, method: str, body: bytes | None, credentials: str | None
    ) -> Request:
        request = Request(url, data=body, method=method, headers={"Accept": _ACCEPTED})
        if body is not None:
            request.add_header("Content-Type", _MEDIA_TYPE)
        basic = _secret("basic.auth.user.info", self.basic_auth) or credentials
        token = _secret("bearer.auth.token", self.bearer_token)
        if basic is not None:
            word = base64.b64encode(basic.encode()).decode()
            request.add_header("Authorization", f"Basic {word}")
        elif token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        return request

    def _tls(self, url: str) -> ssl.SSLContext | None:
        if self.ca_location is None or not url.startswith("https"):
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_location)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"{self.ca_location} is no PEM file of certificates: {error}"
            ) from error


class _Trouble(Exception):
    """One registry could not answer; another may. `is_untouched`: it was never asked."""

    def __init__(self, reason: str, *, is_untouched: bool = False) -> None:
        super().__init__(reason)
        self.is_untouched = is_untouched


def _secret(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    from penstock.client.wire.secrets import resolve_secrets

    return resolve_secrets({name: value})[name]


def _without_credentials(url: str) -> tuple[str, str | None]:
    """http://ann:secret@host is a host and who asks there."""
    parts = urlsplit(url)
    who, found, host = parts.netloc.rpartition("@")
    if not found:
        return url, None
    return urlunsplit((parts.scheme, host, parts.path, "", "")), unquote(who)


def _judged(error: HTTPError, address: str) -> Exception:
    """What an answer that is no success means."""
    told = _told(error)
    if error.code in _REFUSALS:
        code, message = told.get("error_code"), told.get("message")
        if isinstance(code, int):
            return RegistryRefused(error.code, code, str(message)[:2_000])
    sentence = f"{address} answered {error.code} {error.reason}"
    if error.code >= 500 or error.code == 429:
        return _Trouble(sentence)
    if error.code == 404:
        return RegistryRefused(404, 404, f"{address} has nothing at this path")
    return RegistryUnreachable(f"{sentence}: {told['message']}" if "message" in told else sentence)


def _told(error: HTTPError) -> Mapping[str, Any]:
    try:
        return _document(error.read(_ANSWER_BYTES_MAX + 1), "")
    except (RegistryUnreachable, OSError):
        return {}


def _document(body: bytes, address: str) -> Mapping[str, Any]:
    answer = _json(body, address)
    if not isinstance(answer, dict):
        raise RegistryUnreachable(f"{address} does not answer like a schema registry")
    return answer


def _json(body: bytes, address: str) -> Any:
    if len(body) > _ANSWER_BYTES_MAX:
        raise RegistryUnreachable(f"{address} answers with more than {_ANSWER_BYTES_MAX} bytes")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RegistryUnreachable(f"{address} does not answer like a schema registry") from error
