"""How instances and the proxy end: idle, too many, stopped, killed, and brokers that are away."""

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.integration.rest.v2.asking import (
    assign,
    error_of,
    post,
    produce,
    read,
    stored,
    subscribe,
)
from tests.support.broker import BrokerProcess
from tests.support.processes import free_port
from tests.support.rest import RestProcess
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.operations.groups import GroupDescription

Start = Callable[..., RestProcess]


@pytest.fixture
def start(broker: BrokerProcess, tmp_path: Path) -> Iterator[Start]:
    """Starts proxies of the test's own."""
    started: list[RestProcess] = []

    def begin(**settings: str) -> RestProcess:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        one = RestProcess(tmp_path / str(len(started)), broker.address, named)
        started.append(one)
        one.start()
        return one

    yield begin
    for one in started:
        one.kill()


def members(broker: BrokerProcess, group: str) -> int:
    with Admin(bootstrap_servers=broker.address) as admin:
        found = admin.describe_consumer_groups([group])[group]
    return len(found.members) if isinstance(found, GroupDescription) else 0


def test_too_many_instances_are_refused_and_the_others_work_on(start: Start) -> None:
    proxy = start(consumer_instances_max="5")
    with httpx.Client(base_url=proxy.url, timeout=120) as client:

        def create(_: int) -> httpx.Response:
            return client.post("/consumers/many")

        with ThreadPoolExecutor(16) as threads:
            answers = list(threads.map(create, range(1000)))
        made = [one.json()["base_uri"] for one in answers if one.status_code == 200]
        refused = [one for one in answers if one.status_code != 200]
        assert (len(made), len(refused)) == (5, 995)
        assert {error_of(one) for one in refused} == {(429, 429)}
        assert "consumer.instances.max" in refused[0].json()["message"]
        stored(produce(client, "too-many", [{"value": "QUJD"}], "binary"))
        assert client.delete(made[0]).status_code == 204
        again = client.post("/consumers/many")
        assert again.status_code == 200
    assert proxy.stop() == 0
    assert proxy.tracebacks() == {}


def test_an_idle_instance_ends_and_leaves_its_group(start: Start, broker: BrokerProcess) -> None:
    proxy = start(consumer_instance_timeout_ms="1500", consumer_request_timeout_ms="500")
    with httpx.Client(base_url=proxy.url, timeout=120) as client:
        stored(produce(client, "idle", [{"value": "QUJD"}], "binary"))
        wanted = {"auto.offset.reset": "earliest"}
        base = post(client, "/consumers/idle-group", wanted).json()["base_uri"]
        subscribe(client, base, "idle")
        read(client, base, 1)
        assert members(broker, "idle-group") == 1
        eventually(lambda: members(broker, "idle-group") == 0, what="the end of the member")
        assert error_of(client.get(f"{base}/subscription")) == (404, 40403)


def is_busy(base: str) -> bool:
    """Whether an instance is used: who asks for it then waits for its turn."""
    try:
        httpx.get(f"{base}/subscription", timeout=2)
    except httpx.ReadTimeout:
        return True
    return False


def test_a_stop_lets_all_instances_leave_their_groups(start: Start, broker: BrokerProcess) -> None:
    proxy = start()
    with httpx.Client(base_url=proxy.url, timeout=120) as client:
        stored(produce(client, "stopped", [{"value": "QUJD"}], "binary"))
        for number in range(3):
            wanted = {"auto.offset.reset": "earliest", "consumer.request.timeout.ms": 90_000}
            base = post(client, f"/consumers/stopped-{number}", wanted).json()["base_uri"]
            subscribe(client, base, "stopped")
            read(client, base, 1)
        assert [members(broker, f"stopped-{number}") for number in range(3)] == [1, 1, 1]
    # One reads on while the proxy is told to stop: its wait of 90 seconds is broken off.
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(httpx.get, f"{base}/records", timeout=120)
        eventually(lambda: is_busy(base), what="the read to wait")
        assert proxy.stop() == 0
        waiting.exception()  # Answered, or cut off: both are fine.
    assert [members(broker, f"stopped-{number}") for number in range(3)] == [0, 0, 0]
    assert proxy.tracebacks() == {}


def test_a_killed_proxy_loses_no_record_that_it_confirmed(
    start: Start, broker: BrokerProcess, client: httpx.Client
) -> None:
    proxy = start()
    confirmed: list[int] = []

    def write(number: int) -> None:
        with httpx.Client(base_url=proxy.url, timeout=120) as own:
            while True:
                try:
                    got = produce(own, "killed", [{"value": number}] * 20, "json")
                except httpx.HTTPError:
                    return
                confirmed.extend(offset for _, offset in stored(got))

    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(write, number) for number in range(4)]
        eventually(lambda: len(confirmed) > 500, what="five hundred records")
        proxy.kill()
        for one in writing:
            one.result()
    assert len(set(confirmed)) == len(confirmed)
    ends = client.get("/topics/killed/partitions/0/offsets").json()
    assert max(confirmed) < ends["end_offset"]
    proxy.start()
    with httpx.Client(base_url=proxy.url, timeout=120) as own:
        assert stored(produce(own, "killed", [{"value": 1}], "json"))


def test_brokers_that_are_away_are_told_and_come_back(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "b") as broker:
        broker.start()
        settings = {
            "producer.delivery.timeout.ms": "4000",
            "producer.request.timeout.ms": "2000",
            "admin.default.api.timeout.ms": "3000",
        }
        with RestProcess(tmp_path / "r", broker.address, settings) as proxy:
            proxy.start()
            with httpx.Client(base_url=proxy.url, timeout=120) as client:
                stored(produce(client, "away", [{"value": 1}], "json"))
                base = client.post("/consumers/away").json()["base_uri"]
                subscribe(client, base, "away")
                assert client.get(f"{base}/records").status_code == 200
                broker.kill()
                got = produce(client, "away", [{"value": 1}] * 2, "json")
                assert got.status_code == 200
                assert {one["error_code"] for one in got.json()["offsets"]} == {50003}
                assert client.get("/topics").status_code in (500, 503)
                assert client.get(f"{base}/records").status_code == 200
                broker.start()
                eventually(
                    lambda: (
                        produce(client, "away", [{"value": 2}], "json").json()["offsets"][0][
                            "error_code"
                        ]
                        is None
                    ),
                    what="a record after the return",
                )
                broker.kill()
            assert proxy.stop() == 0
            assert proxy.tracebacks() == {}


def test_a_registry_that_is_away_is_told_and_keeps_nobody_else(start: Start) -> None:
    proxy = start(schema_registry_url=f"http://127.0.0.1:{free_port()}")
    with httpx.Client(base_url=proxy.url, timeout=120) as client:
        by_text = produce(client, "no-registry", [{"value": 1}], "avro", value_schema='"int"')
        assert error_of(by_text) == (408, 40801)
        by_id = produce(client, "no-registry", [{"value": 1}], "protobuf", value_schema_id=1)
        assert error_of(by_id) == (408, 40801)
        assert stored(produce(client, "no-registry", [{"value": 1}], "json")) == [(0, 0)]
    assert proxy.stop() == 0
    assert proxy.tracebacks() == {}


def test_without_a_registry_formats_with_schemas_are_refused(start: Start) -> None:
    proxy = start()
    with httpx.Client(base_url=proxy.url, timeout=120) as client:
        got = produce(client, "no-registry", [{"value": 1}], "avro", value_schema='"int"')
        assert error_of(got) == (422, 42205)
        made = post(client, "/consumers/no-registry", {"format": "avro"})
        assert error_of(made) == (422, 42205)
        assert "schema.registry.url" in made.json()["message"]


@pytest.mark.parametrize(
    "settings",
    [
        {"consumer_group_protocol": "consumer"},
        {"consumer_partition_assignment_strategy": "cooperative-sticky"},
    ],
    ids=["consumer", "cooperative"],
)
def test_a_group_of_any_protocol_is_joined_and_left(
    start: Start, broker: BrokerProcess, settings: dict[str, str]
) -> None:
    proxy = start(**settings, consumer_request_timeout_ms="5000")
    topic = "-".join(settings).replace("_", "-")
    with httpx.Client(base_url=proxy.url, timeout=120) as client:
        stored(produce(client, topic, [{"value": "QUJD"}], "binary"))
        wanted = {"auto.offset.reset": "earliest", "auto.commit.enable": "false"}
        base = post(client, f"/consumers/{topic}", wanted).json()["base_uri"]
        subscribe(client, base, topic)
        read(client, base, 1)
        assert client.delete(f"{base}/subscription").status_code == 204
        eventually(lambda: members(broker, topic) == 0, what="the end of the member")
        assign(client, base, topic)
        read(client, base, 1)
        assert client.delete(f"{base}/subscription").status_code == 204
        subscribe(client, base, topic)
        read(client, base, 1)


def test_two_signals_end_it_at_once(start: Start) -> None:
    proxy = start()
    proxy.send_signal(signal.SIGTERM)
    proxy.send_signal(signal.SIGTERM)
    assert proxy.wait() in (0, -signal.SIGTERM)
