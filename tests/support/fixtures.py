"""Brokers as fixtures: one per test, one per module, or as many as a test starts itself."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.broker import BrokerProcess

StartBroker = Callable[..., BrokerProcess]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts brokers for one test; whatever still runs at its end is killed."""
    with ExitStack() as running:

        def start(settings: Mapping[str, str] | None = None, *, name: str = "b") -> BrokerProcess:
            broker = BrokerProcess(tmp_path / name, settings)
            running.enter_context(broker)
            broker.start()
            return broker

        yield start


@pytest.fixture
def broker(start_broker: StartBroker) -> BrokerProcess:
    """A broker with default settings for this test alone."""
    return start_broker()


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with default settings for all tests of a module; it must outlive and stop well."""
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as broker:
        broker.start()
        yield broker
        assert broker.stop() == 0, broker.log_end
