"""A broker with a listener of each protocol, and what a client must say at each."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.security.secured_broker import (
    SecuredBroker,
    add_scram_users,
    listener_settings,
)
from tests.support.broker import BrokerProcess
from tests.support.key_stores import make_identity
from tests.support.processes import free_port


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    directory: Path = tmp_path_factory.mktemp("secured")
    world = SecuredBroker.make_world(directory, make_identity("authority"))
    ports = {name: free_port() for name in world.protocols}
    settings = listener_settings(world, ports)
    with BrokerProcess(directory, settings, port=ports["PLAINTEXT"]) as broker:
        broker.start()
        world.broker, world.ports = broker, ports
        add_scram_users(world.address("PLAINTEXT"), "alice")
        yield world
        assert broker.tracebacks() == {}
        broker.stop()
