"""Connect's REST interface, asked by statements about connectors.

Its answers are handed on as they are, and its refusals with its own words.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from penstock.errors import PenstockError
from penstock.sql.running.ports import ConnectRefused

_ANSWER_BYTES_MAX: Final = 16 << 20
_TIMEOUT_S: Final = 30.0


class ConnectUnreachable(PenstockError):
    """No worker answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectWorker:
    """Asks the first of several workers that answers."""

    urls: tuple[str, ...]
    credentials: str | None = field(default=None, repr=False)  # user:password

    def create(self, name: str, config: Mapping[str, str]) -> Mapping[str, Any]:
        """A new connector, as Connect tells of it."""
        made: Mapping[str, Any] = self._ask("POST", "/connectors", {"name": name, "config": config})
        return made

    def problems(self, plugin: str, config: Mapping[str, str]) -> Sequence[str]:
        """What Connect finds wrong with a configuration, setting by setting."""
        path = f"/connector-plugins/{_segment(plugin)}/config/validate"
        found = self._ask("PUT", path, dict(config))
        values = [one["value"] for one in found.get("configs", ())]
        return [f"{one['name']} - {told}" for one in values for told in one.get("errors", ())]

    def names(self) -> Sequence[str]:
        """All connectors."""
        found: list[str] = self._ask("GET", "/connectors")
        return sorted(found)

    def info(self, name: str) -> Mapping[str, Any]:
        """What a connector is: its configuration and tasks."""
        found: Mapping[str, Any] = self._ask("GET", f"/connectors/{_segment(name)}")
        return found

    def status(self, name: str) -> Mapping[str, Any]:
        """How a connector and its tasks are."""
        found: Mapping[str, Any] = self._ask("GET", f"/connectors/{_segment(name)}/status")
        return found

    def topics(self, name: str) -> Sequence[str]:
        """The topics that a connector has used."""
        found = self._ask("GET", f"/connectors/{_segment(name)}/topics")
        return sorted(found.get(name, {}).get("topics", ()))

    def plugins(self) -> Sequence[Mapping[str, Any]]:
        """The connectors that could be made."""
        found: Sequence[Mapping[str, Any]] = self._ask("GET", "/connector-plugins")
        return found

    def delete(self, name: str) -> None:
        """Remove a connector."""
        self._ask("DELETE", f"/connectors/{_segment(name)}")

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        reasons = []
        for url in self.urls:
            try:
                return self._ask_one(url, method, path, body)
            except (URLError, OSError) as error:
                reasons.append(f"{url}: {getattr(error, 'reason', error)}")
        raise ConnectUnreachable(f"No Connect worker answers ({'; '.join(reasons)}).")

    def _ask_one(self, url: str, method: str, path: str, body: object) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        request = Request(url + path, data=sent, method=method, headers=self._headers())
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as answer:
                content = answer.read(_ANSWER_BYTES_MAX + 1)
        except HTTPError as error:
            with error:
                raise ConnectRefused(error.code, _words(error.read(_ANSWER_BYTES_MAX))) from None
        try:
            return json.loads(content) if content else None
        except ValueError:
            raise ConnectUnreachable(f"{url} answers what is not Connect's.") from None

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.credentials is not None:
            word = base64.b64encode(self.credentials.encode()).decode()
            headers["Authorization"] = f"Basic {word}"
        return headers


def _segment(text: str) -> str:
    return quote(text, safe="")


def _words(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content.decode("utf-8", "replace")[:500]
