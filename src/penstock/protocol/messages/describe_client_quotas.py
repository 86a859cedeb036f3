"""DescribeClientQuotas: limits for users, client ids and addresses."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, float64, int8, int16, int32, string


class ComponentData(Struct):
    """One condition on the entity: exact, default or any."""

    entity_type: str = string("0+")
    match_type: int = int8("0+")
    match: str | None = string("0+", nullable=True)


class DescribeClientQuotasRequest(Request, api=ApiKey.DESCRIBE_CLIENT_QUOTAS):
    """Conditions; strict ones leave out entities with further parts."""

    components: list[ComponentData] = array(ComponentData, "0+")
    strict: bool = boolean("0+")


class EntityData(Struct):
    """One part of an entity; a null name is the default."""

    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable=True)


class ValueData(Struct):
    """A limit and its value."""

    key: str = string("0+")
    value: float = float64("0+")


class EntryData(Struct):
    """An entity and its limits."""

    entity: list[EntityData] = array(EntityData, "0+")
    values: list[ValueData] = array(ValueData, "0+")


class DescribeClientQuotasResponse(Response, api=ApiKey.DESCRIBE_CLIENT_QUOTAS):
    """The limits found."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    entries: list[EntryData] | None = array(EntryData, "0+", nullable=True)
