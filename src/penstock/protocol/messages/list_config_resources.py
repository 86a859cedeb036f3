"""ListConfigResources: the names that have settings (KIP-1142)."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int8, int16, int32, string


class ListConfigResourcesRequest(Request, api=ApiKey.LIST_CONFIG_RESOURCES):
    """The kinds asked for; version 0 lists client metrics only."""

    resource_types: list[int] = array(int8, "1+")


class ConfigResource(Struct):
    """A name and its kind."""

    resource_name: str = string("0+")
    resource_type: int = int8("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Response, api=ApiKey.LIST_CONFIG_RESOURCES):
    """The names found."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    config_resources: list[ConfigResource] = array(ConfigResource, "0+")
