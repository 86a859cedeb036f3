"""AlterClientQuotas: set or remove limits."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, float64, int16, int32, string


class EntityData(Struct):
    """One part of an entity; a null name is the default."""

    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable=True)


class OpData(Struct):
    """A limit to set or to remove."""

    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = boolean("0+")


class EntryDataRequest(Struct):
    """An entity and the changes to its limits."""

    entity: list[EntityData] = array(EntityData, "0+")
    ops: list[OpData] = array(OpData, "0+")


class AlterClientQuotasRequest(Request, api=ApiKey.ALTER_CLIENT_QUOTAS):
    """Changes to make, or only to check."""

    entries: list[EntryDataRequest] = array(EntryDataRequest, "0+")
    validate_only: bool = boolean("0+")


class EntryDataResponse(Struct):
    """Whether one entity was changed."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    entity: list[EntityData] = array(EntityData, "0+")


class AlterClientQuotasResponse(Response, api=ApiKey.ALTER_CLIENT_QUOTAS):
    """One result per entity."""

    throttle_time_ms: int = int32("0+")
    entries: list[EntryDataResponse] = array(EntryDataResponse, "0+")
