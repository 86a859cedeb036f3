"""Delegation tokens in the metadata store, in the paths and the JSON Apache Kafka used.

A node holds all that is stored of a token; its secret is never stored. Whoever writes a node also
leaves a notice with the token's id, for readers that follow those.
"""

import json
import logging
from typing import Any

from penstock.cluster.znodes import (
    DELEGATION_TOKEN_CHANGES,
    DELEGATION_TOKENS,
    NodeUnreadable,
    desanitized,
    sanitized,
)
from penstock.errors import ConfigError
from penstock.security.delegation import TokenInformation
from penstock.security.principals import Principal

TOKEN_CHANGE_PREFIX = f"{DELEGATION_TOKEN_CHANGES}/token_change_"

_log = logging.getLogger("penstock.cluster.controller")

_VERSION = 3
_FIRST_WITH_REQUESTER = 3


def token_path(token_id: str) -> str:
    return f"{DELEGATION_TOKENS}/{token_id}"


def encode_token(token: TokenInformation) -> bytes:
    value = {
        "version": _VERSION,
        "owner": sanitized(str(token.owner)),
        "tokenRequester": sanitized(str(token.requester)),
        "renewers": [sanitized(str(renewer)) for renewer in token.renewers],
        "issueTimestamp": token.issued_ms,
        "maxTimestamp": token.max_ms,
        "expiryTimestamp": token.expires_ms,
        "tokenId": token.token_id,
    }
    return json.dumps(value, separators=(",", ":")).encode()


def decode_token(path: str, content: bytes) -> TokenInformation:
    """NodeUnreadable for what is no token."""
    try:
        read = json.loads(content)
        if not 0 < int(read["version"]) <= _VERSION:
            raise NodeUnreadable(path, f"version {read['version']!r} is not known")
        return _token(read)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NodeUnreadable(path, f"{type(error).__name__} {error}") from None
    except ConfigError as error:
        raise NodeUnreadable(path, error) from None


def read_token(path: str, content: bytes) -> TokenInformation | None:
    """A node that is no token opens no door: it is logged and passed over."""
    try:
        return decode_token(path, content)
    except NodeUnreadable as error:
        _log.warning("A delegation token is passed over: %s", error)
        return None


def _token(read: dict[str, Any]) -> TokenInformation:
    owner = _principal(read["owner"])
    has_requester = read["version"] >= _FIRST_WITH_REQUESTER
    return TokenInformation(
        token_id=str(read["tokenId"]),
        owner=owner,
        requester=_principal(read["tokenRequester"]) if has_requester else owner,
        renewers=tuple(_principal(text) for text in read["renewers"]),
        issued_ms=int(read["issueTimestamp"]),
        max_ms=int(read["maxTimestamp"]),
        expires_ms=int(read["expiryTimestamp"]),
    )


def _principal(text: str) -> Principal:
    return Principal.parse(desanitized(text))
