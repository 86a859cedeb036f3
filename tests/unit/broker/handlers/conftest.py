"""Brokers that groups and transactional producers can use at once."""

from collections.abc import Callable

import pytest
from tests.unit.broker.conftest import Served
from tests.unit.broker.handlers.transactional_client import Client

from penstock.errors import ErrorCode
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest


@pytest.fixture
def grouped(serve: Callable[..., Served]) -> Served:
    """A coordinator whose groups do not wait for company; topics `t` and `u` of two partitions."""
    served = serve({"offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"})
    served.ask(FindCoordinatorRequest(key="g"), 1)
    served.create("t", 2)
    served.create("u", 2)
    return served


@pytest.fixture
def client(served: Served) -> Client:
    """A producer that has its id and epoch; the topic `orders` has three partitions."""
    served.create("orders", 3)
    client = Client(served)
    assert client.init() == ErrorCode.NONE
    return client
