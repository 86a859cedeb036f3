"""Quotas outlive the broker, are shown as Kafka shows them, and are told as metrics."""

import struct
import urllib.request

from tests.integration.quotas.conftest import Configs, run_configs
from tests.support.batches import batch
from tests.support.broker import BrokerProcess
from tests.support.waiting import eventually
from tests.support.wire import METADATA, PRODUCE, RawConnection, WireError, produce_body, request

TOPIC = "kept"


def throttle_of(port: int, client_id: str, size: int = 50_000) -> int:
    """Produce one batch and read how long the client is to wait, in milliseconds."""
    with RawConnection(port) as connection:
        body = produce_body({(TOPIC, 0): batch([bytes(size)])})
        connection.send(request(PRODUCE, 7, body, client_id=client_id))
        # Version 7 ends with the throttle time.
        return int(struct.unpack(">i", connection.read_frame()[-4:])[0])


def test_quotas_are_kept_over_a_restart_and_over_a_crash(quota_broker: BrokerProcess) -> None:
    broker = quota_broker
    with RawConnection(broker.port) as connection:
        connection.create_topic(TOPIC)
    settings = [
        (("--entity-type", "clients", "--entity-name", "an app"), "producer_byte_rate=1000"),
        (("--entity-type", "users", "--entity-default"), "request_percentage=90.5"),
        (
            ("--user", "CN=x", "--client", "c/1"),
            "consumer_byte_rate=2000,controller_mutation_rate=3.5",
        ),
        (("--entity-type", "ips", "--entity-name", "10.0.0.1"), "connection_creation_rate=7"),
    ]
    for entity, added in settings:
        run_configs(broker, "--alter", *entity, "--add-config", added)
    expected = [
        "Quota configs for client-id 'an app' are producer_byte_rate=1000.0\n",
        "Quota configs for the default user-principal are request_percentage=90.5\n",
        "Quota configs for user-principal 'CN=x', client-id 'c/1' are "
        "consumer_byte_rate=2000.0, controller_mutation_rate=3.5\n",
        "Quota configs for ip '10.0.0.1' are connection_creation_rate=7.0\n",
    ]

    def described() -> list[str]:
        return [run_configs(broker, "--describe", *entity) for entity, _ in settings]

    assert described() == expected
    assert throttle_of(broker.port, "an app") > 10_000
    assert broker.stop() == 0
    broker.start()
    assert described() == expected
    assert throttle_of(broker.port, "an app") > 10_000
    broker.kill()
    broker.start()
    assert described() == expected
    assert throttle_of(broker.port, "an app") > 10_000
    assert throttle_of(broker.port, "another") == 0


def test_rates_and_throttle_times_are_told_as_metrics(
    quota_broker: BrokerProcess, configs: Configs, metrics_port: int
) -> None:
    with RawConnection(quota_broker.port) as connection:
        connection.create_topic(TOPIC)
    configs(
        *("--alter", "--entity-type", "clients", "--entity-name", "c"),
        *("--add-config", "producer_byte_rate=1000"),
    )
    told_ms = throttle_of(quota_broker.port, "c")
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=120) as answer:
        lines = answer.read().decode().splitlines()
    name = 'kafka_server_quota_throttle_time{clientId="c",resource="Produce"}'
    (line,) = [line for line in lines if line.startswith(name)]
    assert float(line.split()[-1]) == told_ms
    rate = 'kafka_server_quota_byte_rate{clientId="c",resource="Produce"}'
    (line,) = [line for line in lines if line.startswith(rate)]
    assert float(line.split()[-1]) > 10_000


def test_time_is_a_quota_too(quota_broker: BrokerProcess, configs: Configs) -> None:
    configs(
        *("--alter", "--entity-type", "clients", "--entity-name", "busy"),
        *("--add-config", "request_percentage=0.0001"),
    )
    with RawConnection(quota_broker.port) as connection:
        connection.send(request(METADATA, 3, struct.pack(">i", -1), client_id="busy"))
        frame = connection.read_frame()
    assert 0 < struct.unpack_from(">i", frame, 4)[0] <= 1000


def test_an_address_that_connects_too_often_is_turned_away(
    quota_broker: BrokerProcess, configs: Configs
) -> None:
    configs(
        *("--alter", "--entity-type", "ips", "--entity-name", "127.0.0.1"),
        *("--add-config", "connection_creation_rate=5"),
    )

    def comes_in() -> bool:
        try:
            with RawConnection(quota_broker.port) as connection:
                return connection.api_versions().error_code == 0
        except (WireError, ConnectionError):
            return False

    # How many come before that is a matter of the machine.
    assert not all(comes_in() for _ in range(2000))
    eventually(comes_in)

    def is_removed() -> bool:
        # The tool itself needs two connections, and may be turned away like everybody else.
        try:
            configs(
                *("--alter", "--entity-type", "ips", "--entity-name", "127.0.0.1"),
                *("--delete-config", "connection_creation_rate"),
            )
        except AssertionError:
            return False
        return True

    eventually(is_removed, timeout_s=120)
    assert all(comes_in() for _ in range(100))


def test_the_broker_takes_only_so_many_connections_in_a_second(
    quota_broker: BrokerProcess, configs: Configs
) -> None:
    """Nobody is turned away: newcomers wait until the door opens again."""
    configs(
        *("--alter", "--entity-type", "brokers", "--entity-default"),
        *("--add-config", "max.connection.creation.rate=20"),
    )
    counted = 0
    for _ in range(60):
        with RawConnection(quota_broker.port) as connection:
            counted += connection.api_versions().error_code == 0
    assert counted == 60
