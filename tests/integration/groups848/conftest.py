"""A lab whose consumer groups beat fast, so that experiments take seconds."""

from collections.abc import Iterator

import pytest
from tests.integration.groups.lab import Lab
from tests.support.fixtures import StartBroker

FAST = {
    "group.initial.rebalance.delay.ms": "300",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "200",
}


@pytest.fixture
def lab(start_broker: StartBroker) -> Iterator[Lab]:
    made = Lab(start_broker(FAST))
    try:
        yield made
    finally:
        made.close()
