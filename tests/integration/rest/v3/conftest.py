"""One broker and one proxy for all tests of version 3, and requests as clients make them."""

from collections.abc import Callable, Iterator
from itertools import count

import httpx
import pytest
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess
from tests.support.rest import RestProcess

_numbers = count(1)


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}
    with BrokerProcess(tmp_path_factory.mktemp("broker"), settings) as running:
        running.start()
        yield running


@pytest.fixture(scope="package")
def registry(
    broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path_factory.mktemp("registry"), broker.address) as running:
        running.start()
        yield running


@pytest.fixture(scope="package")
def proxy(
    broker: BrokerProcess, registry: RegistryProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestProcess]:
    settings = {
        "schema.registry.url": registry.url,
        "record.max.bytes": "100000",
        "request.max.bytes": "200000",
        "stream.buffer.bytes": "200000",
    }
    with RestProcess(tmp_path_factory.mktemp("rest"), broker.address, settings) as running:
        running.start()
        yield running
        assert running.stop() == 0
        assert running.tracebacks() == {}


@pytest.fixture(scope="package")
def cluster(proxy: RestProcess) -> Iterator[httpx.Client]:
    """A client whose addresses begin at the cluster."""
    (found,) = httpx.get(f"{proxy.url}/v3/clusters", timeout=120).json()["data"]
    with httpx.Client(base_url=found["metadata"]["self"], timeout=120) as client:
        yield client


@pytest.fixture
def new_topic(cluster: httpx.Client) -> Callable[..., str]:
    """Creates topics of the test's own; their names."""

    def create(partitions: int = 1) -> str:
        name = f"topic-{next(_numbers)}"
        body = {"topic_name": name, "partitions_count": partitions}
        got = cluster.post("/topics", json=body)
        assert got.status_code == 201, got.text
        return name

    return create


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    """A topic with one partition."""
    return new_topic()
