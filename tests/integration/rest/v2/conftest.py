"""One broker, one registry and one proxy for all tests of version 2."""

from collections.abc import Callable, Iterator
from itertools import count

import httpx
import pytest
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess
from tests.support.rest import RestProcess

V2 = "application/vnd.kafka.v2+json"


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    # A group of one need not wait for others to join.
    settings = {"group.initial.rebalance.delay.ms": "0"}
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
    broker: BrokerProcess,
    registry: RegistryProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RestProcess]:
    settings = {"schema.registry.url": registry.url, "consumer.request.timeout.ms": "60000"}
    with RestProcess(tmp_path_factory.mktemp("rest"), broker.address, settings) as running:
        running.start()
        yield running
        assert running.stop() == 0
        assert running.tracebacks() == {}


@pytest.fixture(scope="package")
def client(proxy: RestProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=proxy.url, timeout=120) as made:
        yield made


_numbers = count(1)


@pytest.fixture
def topic(client: httpx.Client) -> str:
    """A topic of the test's own, which the first record brings into being."""
    return f"topic-{next(_numbers)}"


@pytest.fixture
def consumer(client: httpx.Client) -> Iterator[Callable[..., str]]:
    """Makes consumers that read from the beginning; their addresses."""
    made: list[str] = []

    def make(format_: str = "binary", *, group: str = "", **settings: object) -> str:
        group = group or f"group-{next(_numbers)}"
        wanted = {"format": format_, "auto.offset.reset": "earliest"} | {
            name.replace("_", "."): value for name, value in settings.items()
        }
        got = client.post(f"/consumers/{group}", json=wanted, headers={"content-type": V2})
        assert got.status_code == 200, got.text
        made.append(got.json()["base_uri"])
        return made[-1]

    yield make
    for address in made:
        client.delete(address)
