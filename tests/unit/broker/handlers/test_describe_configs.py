"""DescribeConfigs: each kind of resource, and what each version says of a setting."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from penstock.broker.config_resources import ConfigResourceType
from penstock.broker.handlers import describe_configs
from penstock.errors import ErrorCode, KafkaStorage
from penstock.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)


def resource(kind: int, name: str, keys: list[str] | None = None) -> DescribeConfigsResource:
    return DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)


def describe(
    served: Any, kind: int, name: str, keys: list[str] | None = None, version: int = 4, **how: bool
) -> Any:
    asked = DescribeConfigsRequest(resources=[resource(kind, name, keys)], **how)
    (result,) = served.ask(asked, version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def by_name(result: Any) -> dict[str, Any]:
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, "")
    return {config.name: config for config in result.configs}


@pytest.mark.parametrize("version", range(5))
def test_every_version_tells_the_settings_of_a_topic(served: Any, version: int) -> None:
    served.create("t", retention_ms="99")
    configs = by_name(describe(served, ConfigResourceType.TOPIC, "t", version=version))
    assert (configs["retention.ms"].value, configs["retention.ms"].read_only) == ("99", False)
    assert configs["cleanup.policy"].value == "delete"


def test_the_oldest_version_has_a_flag_where_others_have_the_source(served: Any) -> None:
    served.create("t", retention_ms="99")
    old = by_name(describe(served, ConfigResourceType.TOPIC, "t", version=0))
    assert (old["retention.ms"].is_default, old["cleanup.policy"].is_default) == (False, True)
    new = by_name(describe(served, ConfigResourceType.TOPIC, "t", version=1))
    assert (new["retention.ms"].config_source, new["cleanup.policy"].config_source) == (1, 5)


def test_only_the_keys_asked_for_are_told(served: Any) -> None:
    served.create("t")
    keys = ["segment.ms", "no.such.key"]
    assert set(by_name(describe(served, ConfigResourceType.TOPIC, "t", keys))) == {"segment.ms"}


def test_synonyms_and_texts_are_told_only_when_asked_for(served: Any) -> None:
    served.create("t", retention_ms="99")
    plain = by_name(describe(served, ConfigResourceType.TOPIC, "t"))["retention.ms"]
    assert (plain.synonyms, plain.documentation) == ([], None)
    full = by_name(
        describe(
            served,
            ConfigResourceType.TOPIC,
            "t",
            ["retention.ms"],
            include_synonyms=True,
            include_documentation=True,
        )
    )["retention.ms"]
    assert (full.synonyms[0].name, full.synonyms[0].value, full.synonyms[0].source) == (
        "retention.ms",
        "99",
        1,
    )
    assert (full.config_type, bool(full.documentation)) == (5, True)


def test_a_topic_that_is_not_there_is_told(served: Any) -> None:
    missing = describe(served, ConfigResourceType.TOPIC, "absent")
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert missing.configs == []
    assert describe(served, ConfigResourceType.TOPIC, "a/b").error_code == (
        ErrorCode.INVALID_TOPIC_EXCEPTION
    )
    assert (
        describe(served, ConfigResourceType.TOPIC, "").error_code
        == ErrorCode.INVALID_TOPIC_EXCEPTION
    )


def test_a_broker_tells_its_own_settings_and_their_source(serve: Callable[..., Any]) -> None:
    served = serve({"num.partitions": "3"})
    configs = by_name(describe(served, ConfigResourceType.BROKER, "7"))
    assert (configs["num.partitions"].value, configs["num.partitions"].config_source) == ("3", 4)
    assert configs["num.partitions"].read_only
    assert configs["message.max.bytes"].config_source == 5
    assert not configs["message.max.bytes"].read_only


@pytest.mark.parametrize("name", ["8", "seven", "-1"])
def test_a_broker_tells_no_settings_of_another(served: Any, name: str) -> None:
    assert describe(served, ConfigResourceType.BROKER, name).error_code == ErrorCode.INVALID_REQUEST


def test_for_all_brokers_only_the_minimum_in_sync_is_set_until_somebody_sets_more(
    served: Any,
) -> None:
    (only,) = by_name(describe(served, ConfigResourceType.BROKER, "")).values()
    assert (only.name, only.value, only.config_source) == ("min.insync.replicas", "1", 3)
    own = by_name(describe(served, ConfigResourceType.BROKER, "7"))["min.insync.replicas"]
    assert (own.value, own.config_source) == ("1", 3)


def test_loggers_are_told_with_their_level(served: Any) -> None:
    logging.getLogger("penstock.test.described").setLevel(logging.WARNING)
    loggers = by_name(describe(served, ConfigResourceType.BROKER_LOGGER, "7"))
    assert loggers["penstock.test.described"].value == "WARN"
    assert loggers["penstock.test.described"].config_source == 6
    assert "root" in loggers


@pytest.mark.parametrize("name", ["", "8", "x"])
def test_loggers_belong_to_this_broker(served: Any, name: str) -> None:
    result = describe(served, ConfigResourceType.BROKER_LOGGER, name)
    assert result.error_code == ErrorCode.INVALID_REQUEST


def test_a_group_has_the_settings_of_its_broker(served: Any) -> None:
    configs = by_name(describe(served, ConfigResourceType.GROUP, "g"))
    assert configs["consumer.session.timeout.ms"].value == "45000"
    assert describe(served, ConfigResourceType.GROUP, "").error_code == ErrorCode.INVALID_REQUEST


def test_no_client_metrics_are_collected(served: Any) -> None:
    assert by_name(describe(served, ConfigResourceType.CLIENT_METRICS, "m")) == {}
    empty = describe(served, ConfigResourceType.CLIENT_METRICS, "")
    assert empty.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("kind", [0, 1, 3, 127, -1])
def test_an_unknown_kind_of_resource_is_refused_beside_one_that_is_not(
    served: Any, kind: int
) -> None:
    served.create("t")
    asked = DescribeConfigsRequest(resources=[resource(kind, "x"), resource(2, "t")])
    strange, known = served.ask(asked, 4).results
    assert (strange.error_code, strange.configs) == (ErrorCode.INVALID_REQUEST, [])
    assert (known.error_code, bool(known.configs)) == (ErrorCode.NONE, True)


@pytest.mark.parametrize("version", range(5))
def test_an_error_as_a_whole_reaches_every_resource_in_every_version(version: int) -> None:
    request = DescribeConfigsRequest(resources=[resource(2, "t"), resource(4, "7")])
    response = describe_configs.error_response(request, KafkaStorage())
    read = type(response).decode(response.encode(version), version)
    assert [result.error_code for result in read.results] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
