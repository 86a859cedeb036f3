"""DescribeClientQuotas: the limits that are set, by conditions on user, client id and address."""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.quotas.entities import CLIENT_ID, IP, USER, Entity, entity_of
from penstock.config.quotas import parse_quotas
from penstock.errors import InvalidRequest, ProtocolError, UnsupportedVersion
from penstock.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


class Match(IntEnum):
    """What a condition asks of a name."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2  # Any name, the default too: only that the entity has a part of this type.


class Condition(NamedTuple):
    match: Match
    name: str | None  # Of an exact match.

    def fits(self, kind: str, entity: Entity) -> bool:
        if kind not in entity:
            return False
        return self.match is Match.ANY or entity[kind] == self.name


def handle(
    request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    conditions = _conditions(request.components)
    found = []
    for key, stored in sorted(context.broker.image.configs.items()):
        entity, quotas = entity_of(key), parse_quotas(stored)
        if entity is None or not quotas or (request.strict and len(entity) != len(conditions)):
            continue
        if all(condition.fits(kind, entity) for kind, condition in conditions.items()):
            found.append(_entry(entity, quotas))
    return DescribeClientQuotasResponse(error_message=None, entries=found)


def error_response(
    _request: DescribeClientQuotasRequest, error: ProtocolError
) -> DescribeClientQuotasResponse:
    return fail(DescribeClientQuotasResponse(entries=None), error)


def _conditions(components: Iterable[ComponentData]) -> dict[str, Condition]:
    conditions: dict[str, Condition] = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise InvalidRequest("Invalid empty entity type.")
        if kind not in (USER, CLIENT_ID, IP):
            raise UnsupportedVersion(f"Unsupported entity type {kind}")
        if kind in conditions:
            raise InvalidRequest(f"Entity type {kind} cannot appear more than once in the filter.")
        conditions[kind] = _condition(component)
    if IP in conditions and len(conditions) > 1:
        raise InvalidRequest(
            "Invalid entity filter component combination, IP filter component should not be used "
            "with user or clientId filter component."
        )
    return conditions


def _condition(component: ComponentData) -> Condition:
    try:
        match = Match(component.match_type)
    except ValueError:
        raise InvalidRequest(f"Unknown match type {component.match_type}") from None
    if (match is Match.EXACT) != (component.match is not None):
        raise InvalidRequest("A name to match must be given for an exact match, and only there.")
    return Condition(match, component.match)


def _entry(entity: Entity, quotas: dict[str, float]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        values=[ValueData(key=key, value=value) for key, value in sorted(quotas.items())],
    )
