"""AlterConfigs: replace all settings of a resource at once."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, int8, int16, int32, string


class AlterableConfig(Struct):
    """A setting and its new value."""

    name: str = string("0+")
    value: str | None = string("0+", nullable=True)


class AlterConfigsResource(Struct):
    """A resource and all the settings it shall have."""

    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: list[AlterableConfig] = array(AlterableConfig, "0+")


class AlterConfigsRequest(Request, api=ApiKey.ALTER_CONFIGS):
    """Resources to change, or only to check."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource, "0+")
    validate_only: bool = boolean("0+")


class AlterConfigsResourceResponse(Struct):
    """Whether one resource was changed."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    resource_type: int = int8("0+")
    resource_name: str = string("0+")


class AlterConfigsResponse(Response, api=ApiKey.ALTER_CONFIGS):
    """One result per resource."""

    throttle_time_ms: int = int32("0+")
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse, "0+")
