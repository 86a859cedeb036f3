"""Who leads: what instances tell each other through their group, in Confluent's words.

Each member brings its identity, the group's own leader chooses, and all get the same answer. A
member that leads already stays; else the smallest id of those that may lead. Two members with one
address could not forward to each other: then nobody leads, and each says so and ends.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.errors import PenstockError

PROTOCOL_TYPE = "sr"
PROTOCOL = "v0"
NO_ERROR = 0
DUPLICATE_URLS = 1
_VERSION = 1
_PORT_MAX = 65_535


class ForeignMember(PenstockError):
    """What a member says is not what a registry says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceIdentity:
    """An instance, as others reach it."""

    host: str
    port: int
    scheme: str = "http"
    is_eligible: bool = True  # Whether it may lead.
    is_leading: bool = False

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    def json(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.is_eligible,
            "scheme": self.scheme,
            "leader": self.is_leading,
        }

    def encode(self) -> bytes:
        """What a member brings into the group."""
        return _encode(self.json())

    @classmethod
    def of(cls, given: Any) -> "InstanceIdentity":
        """From JSON; ForeignMember if it is none of ours."""
        if not isinstance(given, dict):
            raise ForeignMember("an identity is no object")
        host, port = given.get("host"), given.get("port")
        scheme = given.get("scheme") or "http"
        if not isinstance(host, str) or not host or scheme not in ("http", "https"):
            raise ForeignMember("an identity has no host or another scheme than http and https")
        if not isinstance(port, int) or isinstance(port, bool) or not 0 < port <= _PORT_MAX:
            raise ForeignMember("an identity has no port")
        return cls(
            host=host,
            port=port,
            scheme=scheme,
            is_eligible=given.get("master_eligibility") is not False,
            is_leading=given.get("leader") is True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAssignment:
    """What the group was told."""

    error: int = NO_ERROR
    leader: str | None = None  # The member's id; None: nobody may lead.
    identity: InstanceIdentity | None = None

    def encode(self) -> bytes:
        identity = None if self.identity is None else self.identity.json()
        return _encode(
            {
                "version": _VERSION,
                "error": self.error,
                "master": self.leader,
                "master_identity": identity,
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> "LeaderAssignment":
        """From the group; ForeignMember if it is none of ours."""
        given = _decode(data)
        error, leader, identity = (given.get(n) for n in ("error", "master", "master_identity"))
        if not isinstance(error, int) or not isinstance(leader, str | None):
            raise ForeignMember("an assignment has no error code or no member")
        found = None if identity is None else InstanceIdentity.of(identity)
        return cls(error=error, leader=leader, identity=found)


def decode_identity(data: bytes) -> InstanceIdentity:
    """What a member brought into the group."""
    return InstanceIdentity.of(_decode(data))


def elect(members: Mapping[str, bytes]) -> LeaderAssignment:
    """The leader of these members, by what each brought; who is no registry is passed over."""
    identities = {}
    for member, data in members.items():
        with suppress(ForeignMember):
            identities[member] = decode_identity(data)
    if len({identity.url for identity in identities.values()}) < len(identities):
        return LeaderAssignment(error=DUPLICATE_URLS)
    eligible = {member: one for member, one in identities.items() if one.is_eligible}
    leading = [member for member, one in eligible.items() if one.is_leading]
    # A member that was away may still believe that it leads: then the smallest id decides.
    chosen = leading[0] if len(leading) == 1 else min(eligible, default=None)
    identity = None if chosen is None else eligible[chosen]
    return LeaderAssignment(leader=chosen, identity=identity)


def _encode(fields: dict[str, Any]) -> bytes:
    told = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(told, separators=(",", ":")).encode()


def _decode(data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ForeignMember(f"what a member says is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ForeignMember("what a member says is no JSON object")
    return fields
