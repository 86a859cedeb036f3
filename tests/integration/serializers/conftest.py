"""One broker and one registry for all tests of serializers."""

from collections.abc import Iterator

import pytest
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as running:
        running.start()
        yield running


@pytest.fixture(scope="session")
def registry(
    broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path_factory.mktemp("registry"), broker.address) as running:
        running.start()
        yield running
        assert running.tracebacks() == {}
