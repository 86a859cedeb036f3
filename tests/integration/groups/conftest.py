"""A lab for every test of this folder."""

from collections.abc import Iterator

import pytest
from tests.integration.groups.lab import Lab
from tests.support.fixtures import StartBroker


@pytest.fixture
def lab(start_broker: StartBroker) -> Iterator[Lab]:
    """A broker on which groups come together quickly."""
    made = Lab(start_broker({"group.initial.rebalance.delay.ms": "300"}))
    try:
        yield made
    finally:
        made.close()
