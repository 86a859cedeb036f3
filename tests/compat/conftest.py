"""The server that clients are pointed at: Penstock, or an Apache Kafka to check the tests with.

`PENSTOCK_SUBJECT=kafka-4.3.1` runs the same tests against Apache Kafka. A test that fails there
expects something that Kafka does not do.
"""

import os
from collections.abc import Iterator

import pytest
from tests.support.apache_kafka import KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.outside import needs
from tests.support.processes import ServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server with default settings for all tests of a module."""
    subject = os.environ.get("PENSTOCK_SUBJECT", "penstock")
    directory = tmp_path_factory.mktemp("server")
    server: ServerProcess = (
        BrokerProcess(directory)
        if subject == "penstock"
        else KafkaProcess(needs(subject), directory)
    )
    with server:
        server.start()
        yield server
        assert server.tracebacks() == {}
        server.stop()
