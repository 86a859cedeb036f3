"""Quotas of users, clients and addresses: which keys each may have, and what a value may be.

They are stored beside the settings of topics and brokers, and changed with requests of their own.
Who is throttled, and for how long, is decided in the broker.
"""

import sys
from collections.abc import Mapping
from typing import Final, Literal

from penstock.config.settings import (
    ACTS,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    INT_MAX,
    LONG,
    LONG_MAX,
    MEDIUM,
    Setting,
    SettingTable,
)
from penstock.errors import InvalidRequest

EntityType = Literal["user", "client-id", "ip"]

# fmt: off
CLIENT_QUOTAS: Final = SettingTable((
    Setting("producer_byte_rate", LONG, LONG_MAX, None, MEDIUM, CLUSTER_WIDE,
            ACTS, "Bytes a second a client may send."),
    Setting("consumer_byte_rate", LONG, LONG_MAX, None, MEDIUM, CLUSTER_WIDE,
            ACTS, "Bytes a second a client may fetch."),
    Setting("request_percentage", DOUBLE, float(INT_MAX), None, MEDIUM, CLUSTER_WIDE,
            ACTS, "The part of one processor a client's requests may take, in percent."),
    Setting("controller_mutation_rate", DOUBLE, float(INT_MAX), None, MEDIUM, CLUSTER_WIDE,
            ACTS, "Partitions a second a client may create or delete."),
))

ADDRESS_QUOTAS: Final = SettingTable((
    Setting("connection_creation_rate", INT, INT_MAX, None, MEDIUM, CLUSTER_WIDE,
            ACTS, "Connections a second an address may open."),
))
# fmt: on

_MOST: Final = {INT: INT_MAX, LONG: LONG_MAX, DOUBLE: sys.float_info.max}


def quota_settings(entity: Mapping[str, str | None]) -> SettingTable:
    """The keys an entity may have; an entity is named by types, an empty name means its default."""
    types = set(entity)
    if types == {"ip"}:
        return ADDRESS_QUOTAS
    if types and types <= {"user", "client-id"}:
        return CLIENT_QUOTAS
    raise InvalidRequest(f"Invalid quota entity types {', '.join(sorted(types)) or 'none'}.")


def check_quota(entity: Mapping[str, str | None], key: str, value: float) -> None:
    """Refuse a key the entity cannot have and a value the key cannot take."""
    setting = quota_settings(entity).get(key)
    if setting is None:
        raise InvalidRequest(f"Invalid configuration key {key}")
    if not value > 0:
        raise InvalidRequest(f"Quota {key} must be greater than 0")
    if value > _MOST[setting.type]:
        raise InvalidRequest(f"Proposed value for {key} is too large for a {setting.type.upper()}.")
    if setting.type != DOUBLE and abs(value % 1.0) > 1e-6:
        raise InvalidRequest(f"{key} cannot be a fractional value.")


def quota_text(key: str, value: float) -> str:
    """A quota as it is stored: whole where the key is."""
    setting = CLIENT_QUOTAS.get(key) or ADDRESS_QUOTAS[key]
    return str(float(value)) if setting.type == DOUBLE else str(int(value))


def parse_quotas(stored: Mapping[str, str]) -> dict[str, float]:
    """The quotas among what is stored for an entity; other keys there are credentials.

    A value that no broker would have stored limits nobody: it must not keep one from starting.
    """
    found = {}
    for key, text in stored.items():
        if key in CLIENT_QUOTAS or key in ADDRESS_QUOTAS:
            number = _positive(text)
            if number is not None:
                found[key] = number
    return found


def _positive(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number <= sys.float_info.max else None
