"""Who may use a service: bearer tokens (RFC 6750) that somebody known has signed.

A token is believed as the broker's OAUTHBEARER believes it. Whose it is, is not passed on: to the
brokers a service is one principal.
"""

from collections.abc import Iterable
from urllib.parse import unquote

from starlette.requests import HTTPConnection

from penstock.http.errors import OPEN_PATHS, Unauthorized
from penstock.security.sasl.token_keys import BearerTokens
from penstock.security.sasl.web_tokens import WebTokenRefused


class BearerAuth:
    """The check of one service: raises what the client is to be answered."""

    def __init__(self, tokens: BearerTokens, *, realm: str, open_paths: Iterable[str] = ()) -> None:
        self._tokens = tokens
        self._realm = realm
        self._open = frozenset((*OPEN_PATHS, *open_paths))

    def __call__(self, request: HTTPConnection) -> None:
        """Let the request through, or raise Unauthorized."""
        if unquote(request.scope["path"]) in self._open:
            return
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthorized("Bearer", self._realm)
        try:
            self._tokens.validate(token.strip())
        except WebTokenRefused:
            raise Unauthorized("Bearer", self._realm) from None
