"""Two brokers for all tests of a module."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.support.broker import BrokerProcess


class Clusters(NamedTuple):
    a: str
    b: str


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """Clusters A and B, of one broker each."""
    home = tmp_path_factory.mktemp("clusters")
    quick = {"group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(home / "a", quick) as a, BrokerProcess(home / "b", quick) as b:
        a.start()
        b.start()
        yield Clusters(a.address, b.address)
