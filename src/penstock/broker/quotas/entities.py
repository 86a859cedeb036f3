"""Whom a quota is for: how users, clients and addresses are stored, and who comes before whom.

They are stored as Kafka stored them in ZooKeeper: `/config/users/<user>`, `/config/clients/<id>`,
`/config/users/<user>/clients/<id>`, `/config/ips/<address>`, with names sanitized, so that
`<default>` can be nobody's name.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from penstock.cluster.image.image import ConfigKey
from penstock.cluster.znodes import (
    DEFAULT_ENTITY,
    desanitized,
    sanitized,
    user_client_name,
    user_of,
)
from penstock.config.quotas import quota_settings
from penstock.errors import InvalidRequest

USER, CLIENT_ID, IP = "user", "client-id", "ip"

# Names by type, as in {"user": "alice", "client-id": None}; None is the default of the type.
Entity: TypeAlias = Mapping[str, str | None]


class Scope(NamedTuple):
    """Who shares a meter; an empty name means that all users, or all clients, use it together."""

    user: str
    client_id: str


class QuotaClaim(NamedTuple):
    """The limit that holds for a client, and with whom it shares it."""

    limit: float
    scope: Scope


# How entities are stored


def entity_from(parts: Iterable[tuple[str, str | None]]) -> dict[str, str | None]:
    """The entity a request names; refuses what cannot have quotas."""
    entity: dict[str, str | None] = {}
    for kind, name in parts:
        if kind in entity:
            raise InvalidRequest(f"The entity type {kind} is given twice.")
        if name == "":
            raise InvalidRequest(f"Empty {kind} not supported")
        entity[kind] = name
    quota_settings(entity)  # Refuses types that do not go together.
    address = entity.get(IP)
    if address is not None:
        _check_address(address)
    return entity


def _check_address(address: str) -> None:
    """Names of hosts are refused: who they are could change without anybody saying so here."""
    if canonical_address(address) is None:
        raise InvalidRequest(f"{address} is not a valid IP address.")


def canonical_address(text: str) -> str | None:
    """One spelling for each address, whichever way a socket or an administrator wrote it."""
    import ipaddress  # Most brokers have no quotas for addresses.

    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def config_key(entity: Entity) -> ConfigKey:
    """Where the quotas of an entity are stored."""
    if IP in entity:
        return ("ips", _stored(entity[IP]))
    if USER not in entity:
        return ("clients", _stored(entity[CLIENT_ID]))
    user = _stored(entity[USER])
    if CLIENT_ID not in entity:
        return ("users", user)
    return ("users", user_client_name(user, _stored(entity[CLIENT_ID])))


def entity_of(key: ConfigKey) -> dict[str, str | None] | None:
    """The entity stored under a key; None: settings of something that has no quotas."""
    kind, name = key
    if kind == "ips":
        return {IP: _read(name)}
    if kind == "clients":
        return {CLIENT_ID: _read(name)}
    if kind != "users":
        return None
    user = user_of(kind, name)
    if user is None:
        return {USER: _read(name)}
    return {USER: _read(user), CLIENT_ID: _read(name.rpartition("/")[2])}


def _stored(name: str | None) -> str:
    return DEFAULT_ENTITY if name is None else sanitized(name)


def _read(name: str) -> str | None:
    return None if name == DEFAULT_ENTITY else desanitized(name)


# Who comes before whom


def claim(limits: Mapping[ConfigKey, float], user: str, client_id: str) -> QuotaClaim | None:
    """The limit that holds for a client of a user: that of the most special entity with one."""
    for key, scope in _levels(sanitized(user), sanitized(client_id), user, client_id):
        limit = limits.get(key)
        if limit is not None:
            return QuotaClaim(limit, scope)
    return None


def _levels(
    user: str, client: str, user_name: str, client_id: str
) -> Iterator[tuple[ConfigKey, Scope]]:
    """Kafka's eight levels. A user's quota is shared by all its clients, unless it names them."""
    both = Scope(user_name, client_id)
    yield ("users", user_client_name(user, client)), both
    yield ("users", user_client_name(user, DEFAULT_ENTITY)), both
    yield ("users", user), Scope(user_name, "")
    yield ("users", user_client_name(DEFAULT_ENTITY, client)), both
    yield ("users", user_client_name(DEFAULT_ENTITY, DEFAULT_ENTITY)), both
    yield ("users", DEFAULT_ENTITY), Scope(user_name, "")
    yield ("clients", client), Scope("", client_id)
    yield ("clients", DEFAULT_ENTITY), Scope("", client_id)
