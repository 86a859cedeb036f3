"""ListConfigResources: names by kind, and client metrics alone before version 1."""

import pytest
from tests.unit.broker.conftest import Served

from penstock.broker.config_resources import ConfigResourceType
from penstock.cluster.control.controller import EntityOverrides
from penstock.errors import ErrorCode
from penstock.protocol.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, LOGGER = (
    ConfigResourceType.TOPIC,
    ConfigResourceType.BROKER,
    ConfigResourceType.BROKER_LOGGER,
)
GROUP, CLIENT_METRICS = ConfigResourceType.GROUP, ConfigResourceType.CLIENT_METRICS


@pytest.fixture
def settled(served: Served) -> Served:
    """A broker with two topics, and a group that has settings of its own."""
    served.create("b")
    served.create("a")
    assert served.broker.controller is not None
    change = EntityOverrides("groups", "g", config={"consumer.session.timeout.ms": "50000"})
    served.run(served.broker.controller.set_configs([change]))
    return served


def listed(served: Served, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
    answer = served.ask(ListConfigResourcesRequest(resource_types=list(kinds)), version)
    assert answer.error_code == ErrorCode.NONE
    return [(found.resource_type, found.resource_name) for found in answer.config_resources]


def test_who_names_no_kind_is_told_all(settled: Served) -> None:
    assert sorted(listed(settled)) == [
        (TOPIC, "a"),
        (TOPIC, "b"),
        (BROKER, "7"),
        (LOGGER, "7"),
        (GROUP, "g"),
    ]


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        ([TOPIC], [(TOPIC, "a"), (TOPIC, "b")]),
        ([GROUP, BROKER], [(GROUP, "g"), (BROKER, "7")]),
        ([LOGGER, LOGGER], [(LOGGER, "7")]),
        ([CLIENT_METRICS], []),
    ],
)
def test_kinds_come_in_the_order_asked_for_and_once(
    settled: Served, kinds: list[int], found: list[tuple[int, str]]
) -> None:
    assert listed(settled, *kinds) == found


def test_version_0_knows_client_metrics_alone(settled: Served) -> None:
    answer = settled.ask(ListConfigResourcesRequest(), 0)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.NONE, [])


def test_an_unknown_kind_is_refused_with_all_the_others(settled: Served) -> None:
    answer = settled.ask(ListConfigResourcesRequest(resource_types=[TOPIC, 3]), 1)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
