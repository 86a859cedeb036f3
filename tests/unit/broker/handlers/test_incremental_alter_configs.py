"""IncrementalAlterConfigs: single settings, of topics, brokers and loggers."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError, ErrorCode
from penstock.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.messages.list_config_resources import ListConfigResourcesRequest

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32


def change(kind: int, name: str, *changes: tuple[str, int, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def alter(
    served: Any, *resources: AlterConfigsResource, version: int = 1, validate_only: bool = False
) -> list[int]:
    asked = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    return [answered.error_code for answered in served.ask(asked, version).responses]


def overrides(served: Any, topic: str = "t") -> dict[str, str]:
    return dict(served.broker.image.config("topics", topic))


@pytest.mark.parametrize("version", [0, 1])
def test_a_setting_changes_and_the_others_stay(served: Any, version: int) -> None:
    served.create("t", retention_ms="99", segment_bytes="2000000")
    assert alter(served, change(TOPIC, "t", ("retention.ms", SET, "5")), version=version) == [0]
    assert overrides(served) == {"retention.ms": "5", "segment.bytes": "2000000"}
    assert served.partition("t").log.config.retention_ms == 5


def test_a_deleted_setting_is_at_its_default_again(served: Any) -> None:
    served.create("t", retention_ms="99")
    assert alter(served, change(TOPIC, "t", ("retention.ms", DELETE, None))) == [0]
    assert overrides(served) == {}
    assert served.partition("t").log.config.retention_ms == 604_800_000


def test_lists_grow_and_shrink_from_their_default(served: Any) -> None:
    served.create("t")
    alter(served, change(TOPIC, "t", ("cleanup.policy", APPEND, "compact")))
    assert overrides(served) == {"cleanup.policy": "delete,compact"}
    alter(served, change(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")))
    assert overrides(served) == {"cleanup.policy": "compact"}
    assert served.partition("t").log.config.cleanup_policy == frozenset({"compact"})


def test_changes_of_one_topic_at_the_same_time_are_all_kept(served: Any) -> None:
    served.create("t")
    names = ["retention.ms", "segment.ms", "flush.ms", "delete.retention.ms"]

    async def all_at_once() -> None:
        await asyncio.gather(
            *(
                served.answer(
                    IncrementalAlterConfigsRequest(
                        resources=[change(TOPIC, "t", (name, SET, "1234"))]
                    ),
                    1,
                )
                for name in names
            )
        )

    served.run(all_at_once())
    assert overrides(served) == dict.fromkeys(names, "1234")


def test_a_setting_of_all_brokers_acts_until_this_broker_has_its_own(served: Any) -> None:
    assert alter(served, change(BROKER, "", ("message.max.bytes", SET, "5000"))) == [0]
    assert served.broker.config.message_max_bytes == 5000
    assert alter(served, change(BROKER, "7", ("message.max.bytes", SET, "6000"))) == [0]
    assert served.broker.config.message_max_bytes == 6000
    assert alter(served, change(BROKER, "7", ("message.max.bytes", DELETE, None))) == [0]
    assert served.broker.config.message_max_bytes == 5000


def test_the_topics_follow_a_setting_of_the_broker(served: Any) -> None:
    served.create("follows")
    served.create("own", max_message_bytes="777")
    alter(served, change(BROKER, "", ("message.max.bytes", SET, "5000")))
    assert served.partition("follows").log.config.max_message_bytes == 5000
    assert served.partition("own").log.config.max_message_bytes == 777


def test_where_a_dynamic_setting_comes_from_is_described(served: Any) -> None:
    alter(served, change(BROKER, "", ("message.max.bytes", SET, "5000")))
    alter(served, change(BROKER, "7", ("message.max.bytes", SET, "6000")))
    asked = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=BROKER, resource_name="7", configuration_keys=["message.max.bytes"]
            )
        ],
        include_synonyms=True,
    )
    (config,) = served.ask(asked, 4).results[0].configs
    assert (config.value, config.config_source) == ("6000", 2)
    assert [(it.value, it.source) for it in config.synonyms] == [
        ("6000", 2),
        ("5000", 3),
        ("1048588", 5),
    ]


def test_to_validate_only_changes_nothing(served: Any) -> None:
    served.create("t")
    codes = alter(
        served,
        change(TOPIC, "t", ("retention.ms", SET, "5")),
        change(BROKER, "", ("message.max.bytes", SET, "5000")),
        change(LOGGER, "7", ("root", SET, "TRACE")),
        validate_only=True,
    )
    assert codes == [0, 0, 0]
    assert overrides(served) == {}
    assert served.broker.config.message_max_bytes == 1_048_588
    assert logging.getLogger().level != 5


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (change(TOPIC, "t", ("retention.ms", SET, "soon")), ErrorCode.INVALID_CONFIG),
        (change(TOPIC, "t", ("nonsense", SET, "1")), ErrorCode.INVALID_CONFIG),
        (change(TOPIC, "t", ("retention.ms", SET, None)), ErrorCode.INVALID_REQUEST),
        (change(TOPIC, "t", ("retention.ms", 9, "1")), ErrorCode.INVALID_REQUEST),
        (change(TOPIC, "t", ("retention.ms", APPEND, "1")), ErrorCode.INVALID_CONFIG),
        (
            change(TOPIC, "t", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            change(TOPIC, "absent", ("retention.ms", SET, "1")),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
        (change(TOPIC, "", ("retention.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (change(TOPIC, "a b", ("retention.ms", SET, "1")), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (change(BROKER, "8", ("message.max.bytes", SET, "1")), ErrorCode.INVALID_REQUEST),
        (change(BROKER, "", ("log.dirs", SET, "/x")), ErrorCode.INVALID_REQUEST),
        (change(BROKER, "7", ("message.max.bytes", SET, "-1")), ErrorCode.INVALID_REQUEST),
        (change(LOGGER, "8", ("root", SET, "DEBUG")), ErrorCode.INVALID_REQUEST),
        (change(LOGGER, "", ("root", SET, "DEBUG")), ErrorCode.INVALID_REQUEST),
        (change(LOGGER, "7", ("root", SET, "LOUD")), ErrorCode.INVALID_CONFIG),
        (change(LOGGER, "7", ("no.such.logger", SET, "INFO")), ErrorCode.INVALID_CONFIG),
        (change(LOGGER, "7", ("root", DELETE, None)), ErrorCode.INVALID_REQUEST),
        (change(LOGGER, "7", ("root", APPEND, "INFO")), ErrorCode.INVALID_REQUEST),
        (change(GROUP, "g", ("consumer.session.timeout.ms", SET, "1")), ErrorCode.INVALID_CONFIG),
        (change(GROUP, "g", ("session.timeout.ms", SET, "50000")), ErrorCode.INVALID_CONFIG),
        (
            change(GROUP, "", ("consumer.session.timeout.ms", SET, "50000")),
            ErrorCode.INVALID_REQUEST,
        ),
        (change(16, "m", ("interval.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (change(0, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_bad_changes_get_kafkas_code_and_change_nothing(
    served: Any, asked: AlterConfigsResource, code: ErrorCode
) -> None:
    served.create("t")
    before = served.broker.image
    assert alter(served, asked) == [code]
    assert served.broker.image is before


def test_a_group_has_settings_of_its_own_and_loses_them_again(served: Any) -> None:
    name = "consumer.heartbeat.interval.ms"
    assert alter(served, change(GROUP, "a/b", (name, SET, "6000"))) == [0]
    assert served.broker.image.config("groups", "a/b") == {name: "6000"}
    assert groups_with_settings(served) == ["a/b"]
    assert alter(served, change(GROUP, "a/b", (name, DELETE, None))) == [0]
    assert served.broker.image.config("groups", "a/b") == {}
    assert groups_with_settings(served) == []


def groups_with_settings(served: Any) -> list[str]:
    answer = served.ask(ListConfigResourcesRequest(resource_types=[GROUP]), 1)
    return [found.resource_name for found in answer.config_resources]


def test_a_resource_named_twice_is_refused_and_others_change(served: Any) -> None:
    served.create("t")
    served.create("u")
    codes = alter(
        served,
        change(TOPIC, "t", ("retention.ms", SET, "1")),
        change(TOPIC, "u", ("retention.ms", SET, "2")),
        change(TOPIC, "t", ("segment.ms", SET, "3")),
    )
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert (overrides(served), overrides(served, "u")) == ({}, {"retention.ms": "2"})


def test_every_kind_of_resource_is_listed_by_name(served: Any) -> None:
    served.create("t")
    everything = served.ask(ListConfigResourcesRequest(), 1)
    found = {(one.resource_type, one.resource_name) for one in everything.config_resources}
    assert found == {(TOPIC, "t"), (BROKER, "7"), (LOGGER, "7")}
    assert served.ask(ListConfigResourcesRequest(), 0).config_resources == []
    unknown = served.ask(ListConfigResourcesRequest(resource_types=[TOPIC, 3]), 1)
    assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger of its own, left as it was found."""
    found = logging.getLogger("penstock.test.altered")
    yield found
    found.setLevel(logging.NOTSET)


def test_the_level_of_a_logger_acts_at_once_and_is_given_back(
    served: Any, logger: logging.Logger
) -> None:
    assert alter(served, change(LOGGER, "7", (logger.name, SET, "DEBUG"))) == [0]
    assert logger.level == logging.DEBUG
    assert alter(served, change(LOGGER, "7", (logger.name, DELETE, None))) == [0]
    assert logger.level == logging.NOTSET


def test_settings_that_a_broker_could_not_follow_are_not_stored(served: Any) -> None:
    def check(config: BrokerConfig) -> None:
        if config.log_cleaner_threads == 7:
            raise ConfigError("seven is too much")

    served.broker.config_checks.append(check)
    seven = change(BROKER, "7", ("log.cleaner.threads", SET, "7"))
    asked = IncrementalAlterConfigsRequest(resources=[seven], validate_only=False)
    (answered,) = served.ask(asked, 1).responses
    assert answered.error_code == ErrorCode.INVALID_REQUEST
    assert answered.error_message == (
        "Invalid config value for resource ConfigResource(type=BROKER, name='7'): seven is too much"
    )
    assert served.broker.image.config("brokers", "7") == {}
    assert alter(served, change(BROKER, "7", ("log.cleaner.threads", SET, "6"))) == [0]
    assert alter(served, change(BROKER, "", ("log.cleaner.threads", SET, "7"))) == [0]
