"""A lab whose consumer groups beat fast, so that experiments take seconds."""

from collections.abc import Iterator

import pytest
from tests.integration.groups.lab import Lab
from tests.support.fixtures import StartBroker

FAST = {
    "group.initial.rebalance.delay.ms": "300",
    "group.consumer.min.session.timeout.ms": "1000",
    # A member that waits for the processor must not pass for dead.
    "group.consumer.session.timeout.ms": "60000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "200",
}


# For tests that kill a member, whose others would wait a minute for it otherwise.
SHORT_SESSION = {"group.consumer.session.timeout.ms": "10000"}


@pytest.fixture
def lab(start_broker: StartBroker, request: pytest.FixtureRequest) -> Iterator[Lab]:
    made = Lab(start_broker({**FAST, **getattr(request, "param", {})}))
    try:
        yield made
    finally:
        made.close()
