"""Which of a service's servers runs its persistent queries: what they tell each other, and why.

Whoever runs them goes on: moving a query costs a restore. Otherwise it is the first by address.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIdentity:
    """What a server tells of itself."""

    url: str
    runs_queries: bool = False

    def encode(self) -> bytes:
        """As the group carries it."""
        return json.dumps({"url": self.url, "runs": self.runs_queries}).encode()

    @classmethod
    def decode(cls, data: bytes) -> "ServerIdentity":
        """From what another one told; ValueError for what is no server's."""
        try:
            found = json.loads(data)
            return cls(url=str(found["url"]), runs_queries=bool(found["runs"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no server of SQL tells this: {data!r}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectedRunner:
    """What all servers are told: who runs the queries, and who else is there."""

    member_id: str
    url: str
    servers: tuple[str, ...]  # All addresses, the runner's among them.

    def encode(self) -> bytes:
        """As the group carries it."""
        told = {"runner": self.member_id, "url": self.url, "servers": list(self.servers)}
        return json.dumps(told).encode()

    @classmethod
    def decode(cls, data: bytes) -> "ElectedRunner":
        """From what the leader of the group told."""
        found = json.loads(data)
        return cls(member_id=found["runner"], url=found["url"], servers=tuple(found["servers"]))


def elect_runner(members: Mapping[str, bytes]) -> ElectedRunner:
    """One of the members, by what each told of itself."""
    known = {member: ServerIdentity.decode(told) for member, told in members.items()}
    chosen = min(known, key=lambda one: (not known[one].runs_queries, known[one].url, one))
    servers = tuple(sorted({one.url for one in known.values()}))
    return ElectedRunner(member_id=chosen, url=known[chosen].url, servers=servers)
