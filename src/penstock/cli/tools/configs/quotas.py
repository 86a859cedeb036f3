"""Quotas of users, clients and addresses, as kafka-configs shows and changes them."""

from collections.abc import Mapping, Sequence

from penstock.cli.tools.configs.entities import Entity
from penstock.client.admin import Admin
from penstock.client.operations.quotas import ANY, QuotaEntity
from penstock.errors import CommandError

_QUOTA_TYPE = {"users": "user", "clients": "client-id", "ips": "ip"}
_PRINTED_TYPE = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_QUOTAS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
_KNOWN = {"users": _QUOTAS, "clients": _QUOTAS, "ips": ("connection_creation_rate",)}


def describe(admin: Admin, entities: Sequence[Entity]) -> None:
    """Print a line for each entity that has quotas."""
    wanted: dict[str, str | None] = {}
    for entity in entities:
        wanted[_QUOTA_TYPE[entity.type]] = _name(entity) if entity.name is not None else ANY
    found = dict(admin.describe_client_quotas(wanted))
    if len(entities) == 1 and entities[0].covers_all:
        kind = _QUOTA_TYPE[entities[0].type]
        found.update(admin.describe_client_quotas({kind: None}))
    for entity_key, quotas in found.items():
        print(quota_line(entity_key, quotas))


def quota_line(entity: QuotaEntity, quotas: Mapping[str, float]) -> str:
    """`Quota configs for user-principal 'alice', client-id 'c1' are producer_byte_rate=1024.0`."""
    ordered = sorted(entity, key=lambda part: part[0], reverse=True)
    names = [
        f"the default {_PRINTED_TYPE.get(kind, kind)}"
        if name is None
        else f"{_PRINTED_TYPE.get(kind, kind)} '{name}'"
        for kind, name in ordered
    ]
    values = ", ".join(f"{key}={value}" for key, value in sorted(quotas.items()))
    return f"Quota configs for {', '.join(names)} are {values}"


def alter(
    admin: Admin, entities: Sequence[Entity], added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    """Set and remove quotas of one entity."""
    kind = entities[0].type
    unknown = [key for key in (*added, *deleted) if key not in _KNOWN[kind]]
    if unknown:
        raise CommandError(
            f"{unknown[0]} is not a quota of {kind}: choose from {', '.join(_KNOWN[kind])}."
        )
    changes: dict[str, float | None] = {key: _number(key, value) for key, value in added.items()}
    changes.update(dict.fromkeys(deleted))
    key = tuple((_QUOTA_TYPE[entity.type], _name(entity)) for entity in entities)
    admin.alter_client_quotas(key, changes)


def _name(entity: Entity) -> str | None:
    return entity.name or None


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise CommandError(f"Cannot parse quota configuration value for {key}: {value}") from None
