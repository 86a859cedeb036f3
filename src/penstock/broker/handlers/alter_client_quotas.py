"""AlterClientQuotas: set and remove limits of users, clients and addresses; they act at once."""

from collections.abc import Iterable, Mapping

from penstock.broker.config_resources import store_alteration
from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.quotas.entities import Entity, config_key, entity_from
from penstock.config.quotas import check_quota, quota_settings, quota_text
from penstock.errors import ProtocolError
from penstock.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryDataRequest,
    EntryDataResponse,
    OpData,
)


async def handle(
    request: AlterClientQuotasRequest, context: RequestContext
) -> AlterClientQuotasResponse:
    broker, validate_only = context.broker, request.validate_only
    return AlterClientQuotasResponse(
        entries=[
            _result(entry, await _outcome(entry, broker, validate_only=validate_only))
            for entry in request.entries
        ]
    )


def error_response(
    request: AlterClientQuotasRequest, error: ProtocolError
) -> AlterClientQuotasResponse:
    """The same error for every entity."""
    return AlterClientQuotasResponse(entries=[_result(entry, error) for entry in request.entries])


async def _outcome(
    entry: EntryDataRequest, broker: Broker, *, validate_only: bool
) -> ProtocolError | None:
    """What is wrong with one entity does not stop the others."""
    try:
        entity = entity_from((part.entity_type, part.entity_name) for part in entry.entity)
        await store_alteration(
            broker,
            config_key(entity),
            lambda current: _altered(current, entity, entry.ops),
            validate_only=validate_only,
        )
    except ProtocolError as error:
        return error
    return None


def _altered(current: Mapping[str, str], entity: Entity, ops: Iterable[OpData]) -> dict[str, str]:
    """All that is stored for the entity afterwards; beside quotas that may be credentials."""
    new = dict(current)
    known = quota_settings(entity)
    for op in ops:
        if not op.remove:
            check_quota(entity, op.key, op.value)
            new[op.key] = quota_text(op.key, op.value)
        elif op.key in known:
            new.pop(op.key, None)
    return new


def _result(entry: EntryDataRequest, error: ProtocolError | None) -> EntryDataResponse:
    return fail(EntryDataResponse(entity=entry.entity), error)
