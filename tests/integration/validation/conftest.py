"""One broker and one registry for all tests that harm neither."""

from collections.abc import Iterator

import pytest

pytest.importorskip("authlib")

from tests.integration.validation.world import World, broker_and_registry
from tests.support.broker import BrokerProcess


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, World]]:
    with broker_and_registry(tmp_path_factory.mktemp("validation")) as started:
        yield started


@pytest.fixture
def world(pair: tuple[BrokerProcess, World]) -> World:
    return pair[1]


@pytest.fixture
def broker(pair: tuple[BrokerProcess, World]) -> BrokerProcess:
    return pair[0]
