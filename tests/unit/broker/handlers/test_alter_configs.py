"""AlterConfigs: all overrides of a resource at once."""

from typing import Any

import pytest

from penstock.broker.config_resources import ConfigResourceType
from penstock.errors import ErrorCode
from penstock.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)


def resource(kind: int, name: str, **configs: str | None) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def alter(
    served: Any, *resources: AlterConfigsResource, version: int = 2, validate_only: bool = False
) -> list[int]:
    asked = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    responses = served.ask(asked, version).responses
    for sent, answered in zip(resources, responses, strict=True):
        assert (answered.resource_type, answered.resource_name) == (
            sent.resource_type,
            sent.resource_name,
        )
        assert (answered.error_message is None) == (answered.error_code == ErrorCode.NONE)
    return [answered.error_code for answered in responses]


@pytest.mark.parametrize("version", range(3))
def test_what_is_not_stated_is_at_its_default_again(served: Any, version: int) -> None:
    served.create("t", retention_ms="99", segment_bytes="2000000")
    assert alter(served, resource(2, "t", retention_ms="77"), version=version) == [0]
    assert served.broker.image.config("topics", "t") == {"retention.ms": "77"}
    log = served.partition("t").log
    assert (log.config.retention_ms, log.config.segment_bytes) == (77, 1 << 30)


def test_to_state_nothing_takes_all_overrides_away(served: Any) -> None:
    served.create("t", retention_ms="99")
    assert alter(served, resource(2, "t")) == [0]
    assert served.broker.image.config("topics", "t") == {}


def test_to_validate_only_changes_nothing(served: Any) -> None:
    served.create("t", retention_ms="99")
    good, bad = resource(2, "t", retention_ms="1"), resource(4, "7", broker_id="9")
    assert alter(served, good, bad, validate_only=True) == [0, ErrorCode.INVALID_REQUEST]
    assert served.broker.image.config("topics", "t") == {"retention.ms": "99"}


def test_dynamic_settings_of_a_broker_act(served: Any) -> None:
    assert alter(served, resource(4, "7", message_max_bytes="2000")) == [0]
    assert served.broker.config.message_max_bytes == 2000
    assert alter(served, resource(4, "7")) == [0]
    assert served.broker.config.message_max_bytes == 1_048_588


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (resource(2, "t", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (resource(2, "t", nonsense="1"), ErrorCode.INVALID_CONFIG),
        (resource(2, "t", retention_ms=None), ErrorCode.INVALID_REQUEST),
        (resource(2, "absent", retention_ms="1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (resource(2, "a/b", retention_ms="1"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (resource(2, "", retention_ms="1"), ErrorCode.INVALID_REQUEST),
        (resource(4, "8", message_max_bytes="1"), ErrorCode.INVALID_REQUEST),
        (resource(4, "x", message_max_bytes="1"), ErrorCode.INVALID_REQUEST),
        (resource(4, "7", log_dirs="/elsewhere"), ErrorCode.INVALID_REQUEST),
        (resource(8, "7", root="DEBUG"), ErrorCode.INVALID_REQUEST),
        (resource(16, "m", interval_ms="1"), ErrorCode.INVALID_REQUEST),
        (resource(99, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_bad_changes_get_kafkas_code_and_change_nothing(
    served: Any, change: AlterConfigsResource, code: ErrorCode
) -> None:
    served.create("t", retention_ms="99")
    assert alter(served, change) == [code]
    assert served.broker.image.config("topics", "t") == {"retention.ms": "99"}


def test_a_resource_named_twice_is_refused_and_others_change(served: Any) -> None:
    served.create("t")
    served.create("u")
    codes = alter(
        served,
        resource(ConfigResourceType.TOPIC, "t", retention_ms="1"),
        resource(ConfigResourceType.TOPIC, "u", retention_ms="2"),
        resource(ConfigResourceType.TOPIC, "t", retention_ms="3"),
    )
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert served.broker.image.config("topics", "t") == {}
    assert served.broker.image.config("topics", "u") == {"retention.ms": "2"}
