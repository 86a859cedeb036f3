"""Quotas of users, client ids and addresses."""

from collections.abc import Mapping
from typing import TypeAlias

from penstock.client.wire.cluster import ClusterClient
from penstock.errors import error_for
from penstock.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryDataRequest,
    OpData,
)
from penstock.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

# Pairs such as ("user", "alice") and ("client-id", None), where None is the default of all.
QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]

ANY = "*any*"  # In a filter: entities of this type under any name, the default not included.
_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2


def describe_client_quotas(
    cluster: ClusterClient, components: Mapping[str, str | None], *, strict: bool = True
) -> dict[QuotaEntity, dict[str, float]]:
    """Quotas by entity, for types with a name, None (the default) or ANY."""
    request = DescribeClientQuotasRequest(
        components=[_component(kind, name) for kind, name in components.items()], strict=strict
    )
    answer = cluster.ask_any(request, DescribeClientQuotasResponse)
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message or "")
    return {
        tuple((e.entity_type, e.entity_name) for e in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries or ()
    }


def alter_client_quotas(
    cluster: ClusterClient,
    entity: QuotaEntity,
    changes: Mapping[str, float | None],
    *,
    validate_only: bool = False,
) -> None:
    """Set quotas of one entity; None removes one."""
    entry = EntryDataRequest(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[OpData(key=k, value=v or 0.0, remove=v is None) for k, v in changes.items()],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    answer = cluster.ask_any(request, AlterClientQuotasResponse)
    for result in answer.entries:
        if result.error_code:
            raise error_for(result.error_code, result.error_message or "")


def _component(kind: str, name: str | None) -> ComponentData:
    if name == ANY:
        return ComponentData(entity_type=kind, match_type=_SPECIFIED, match=None)
    if name is None:
        return ComponentData(entity_type=kind, match_type=_DEFAULT, match=None)
    return ComponentData(entity_type=kind, match_type=_EXACT, match=name)
