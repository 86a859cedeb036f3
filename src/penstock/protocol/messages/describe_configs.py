"""DescribeConfigs: settings of topics, brokers and the rest, and where they come from."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, int8, int16, int32, string


class DescribeConfigsResource(Struct):
    """Whose settings, and which; null keys ask for all."""

    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configuration_keys: list[str] | None = array(string, "0+", nullable=True)


class DescribeConfigsRequest(Request, api=ApiKey.DESCRIBE_CONFIGS):
    """Resources to describe, and how fully."""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource, "0+")
    include_synonyms: bool = boolean("1+")
    include_documentation: bool = boolean("3+")


class DescribeConfigsSynonym(Struct):
    """A place that could set the value; the first in the list is the one that did."""

    name: str = string("1+")
    value: str | None = string("1+", nullable=True)
    source: int = int8("1+")


class DescribeConfigsResourceResult(Struct):
    """One setting: value, source, type and text."""

    name: str = string("0+")
    value: str | None = string("0+", nullable=True)
    read_only: bool = boolean("0+")
    is_default: bool = boolean("0")
    config_source: int = int8("1+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("0+")
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, "1+", ignorable=True)
    config_type: int = int8("3+", ignorable=True)
    documentation: str | None = string("3+", nullable=True, ignorable=True)


class DescribeConfigsResult(Struct):
    """The settings of one resource."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult, "0+")


class DescribeConfigsResponse(Response, api=ApiKey.DESCRIBE_CONFIGS):
    """One result per resource."""

    throttle_time_ms: int = int32("0+")
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult, "0+")
