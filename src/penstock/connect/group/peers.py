"""Requests from one worker to another: those of users that only the other can answer, and our own.

Our own are signed with the session key, so that nobody who merely reaches the port can send them.
"""

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from penstock.connect.group.session_keys import SessionKey
from penstock.connect.settings import SigningSettings
from penstock.errors import PenstockError
from penstock.http.whole_answers import read_whole

_ANSWER_BYTES_MAX = 64 << 20
_OK = range(200, 300)


class PeerFailed(PenstockError):
    """Another worker was not reached, or did not do what it was asked."""


class PeerAnswer(NamedTuple):
    """What another worker answered."""

    status: int
    media: str | None
    location: str | None
    body: bytes


class WorkerPeers:
    """The other workers, each by its URL."""

    def __init__(
        self, signing: SigningSettings, tls: ssl.SSLContext | None, timeout_s: float
    ) -> None:
        self._signing = signing
        self._tls = tls
        self._timeout_s = timeout_s

    def pass_on(
        self, url: str, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> PeerAnswer:
        """A user's request, as it came."""
        connection = self._connection(url)
        try:
            connection.request(method, path, body or None, dict(headers))
            answer = connection.getresponse()
            return PeerAnswer(
                answer.status,
                answer.getheader("content-type"),
                answer.getheader("location"),
                read_whole(answer, _ANSWER_BYTES_MAX),
            )
        except (OSError, http.client.HTTPException) as error:
            raise PeerFailed(f"IO Error trying to forward REST request: {error}") from error
        finally:
            connection.close()

    def ask(
        self, url: str, method: str, path: str, document: object, key: SessionKey | None
    ) -> None:
        """A request of our own; PeerFailed says why it was not done."""
        if key is None:
            raise PeerFailed("No session key was read from the config topic yet.")
        body = b"" if document is None else json.dumps(document).encode()
        headers = {
            "content-type": "application/json",
            **key.signed(body, self._signing.algorithm),
        }
        answer = self.pass_on(url, method, path, body, headers)
        if answer.status not in _OK:
            text = answer.body.decode(errors="replace")
            raise PeerFailed(f"{url} answered {answer.status} to {method} {path}: {text}")

    def _connection(self, url: str) -> http.client.HTTPConnection:
        where = urlsplit(url)
        if where.scheme == "https":
            context = self._tls or ssl.create_default_context()
            return http.client.HTTPSConnection(
                where.hostname or "", where.port, timeout=self._timeout_s, context=context
            )
        return http.client.HTTPConnection(where.hostname or "", where.port, timeout=self._timeout_s)
