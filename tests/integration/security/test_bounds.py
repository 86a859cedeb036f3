"""How many may come in, how fast, and how much each user gets: by Kafka's settings, at work."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.integration.security.acl_script import PLAIN_MODULE, as_user
from tests.support.batches import batch
from tests.support.broker import BrokerProcess
from tests.support.processes import HOST, free_port
from tests.support.waiting import eventually
from tests.support.wire import RawConnection, WireError

from penstock.cli.tools.configs import configs
from penstock.client.wire.connection import BrokerConnection
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

BROKERS, CLIENTS, USERS = "PLAINTEXT", "CLIENTS", "SASL_PLAINTEXT"
Set = Callable[[str], None]


class Bounded:
    def __init__(self, broker: BrokerProcess, ports: dict[str, int]) -> None:
        self.broker = broker
        self.ports = ports

    def alter(self, *what: str) -> None:
        where = ["--bootstrap-server", f"{HOST}:{self.ports[BROKERS]}"]
        assert configs.main([*where, "--alter", *what]) == 0

    def set_for_all(self, **settings: object) -> None:
        """Set with dots for underscores; None takes back what was set."""
        scope = ("--entity-type", "brokers", "--entity-default")
        for name, value in settings.items():
            dotted = name.replace("_", ".")
            change = ("--delete-config", dotted)
            if value is not None:
                change = ("--add-config", f"{dotted}={value}")
            self.alter(*scope, *change)

    def comes_in(self, listener: str, source: str = HOST) -> bool:
        peer = self.try_to_enter(listener, source)
        if peer is not None:
            peer.close()
        return peer is not None

    def try_to_enter(
        self, listener: str, source: str = HOST, *, timeout_s: float = 60.0
    ) -> RawConnection | None:
        """None: it was turned away. TimeoutError: nobody opened."""
        peer = RawConnection.__new__(RawConnection)
        address = (HOST, self.ports[listener])
        peer.socket = socket.create_connection(address, timeout_s, source_address=(source, 0))
        peer.correlation_id = 0
        try:
            assert peer.api_versions().error_code == 0
        except TimeoutError:
            peer.close()
            raise
        except (WireError, OSError):
            peer.close()
            return None
        return peer


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bounded]:
    directory: Path = tmp_path_factory.mktemp("bounded")
    ports = {name: free_port() for name in (BROKERS, CLIENTS, USERS)}
    people = " ".join(f'user_{name}="{name}-secret"' for name in ("alice", "bob"))
    settings = {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": BROKERS,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {people};",
        "max.connections.per.ip.overrides": "127.0.0.9:3",
        "listener.name.sasl_plaintext.max.connections": "4",
        "quota.window.num": "3",
    }
    with BrokerProcess(directory, settings, port=ports[BROKERS]) as broker:
        broker.start()
        yield Bounded(broker, ports)
        assert broker.tracebacks() == {}
        broker.stop()


def test_one_address_gets_no_more_than_its_share_at_all_listeners_together(
    bounded: Bounded,
) -> None:
    with ExitStack() as stack:
        for listener in (CLIENTS, CLIENTS, BROKERS):
            peer = bounded.try_to_enter(listener, "127.0.0.9")
            assert peer is not None
            stack.enter_context(peer)
        assert not bounded.comes_in(CLIENTS, "127.0.0.9")
        assert not bounded.comes_in(BROKERS, "127.0.0.9")
        assert bounded.comes_in(CLIENTS)
    eventually(lambda: bounded.comes_in(CLIENTS, "127.0.0.9"))
    words = "Rejected connection from 127.0.0.9, address already has the configured maximum of 3"
    assert words in bounded.broker.log


def test_the_share_of_an_address_can_change_while_the_broker_runs(bounded: Bounded) -> None:
    bounded.set_for_all(max_connections_per_ip=2)
    with ExitStack() as stack:
        for _ in range(2):
            peer = bounded.try_to_enter(CLIENTS, "127.0.0.8")
            assert peer is not None
            stack.enter_context(peer)
        assert not bounded.comes_in(CLIENTS, "127.0.0.8")
        bounded.set_for_all(max_connections_per_ip=None)
        eventually(lambda: bounded.comes_in(CLIENTS, "127.0.0.8"))


def test_a_full_listener_lets_newcomers_wait_and_others_come_in(bounded: Bounded) -> None:
    with ExitStack() as stack:
        inside = [bounded.try_to_enter(USERS) for _ in range(4)]
        for peer in inside:
            assert peer is not None
            stack.enter_context(peer)
        with pytest.raises(TimeoutError):
            bounded.try_to_enter(USERS, timeout_s=1)
        assert bounded.comes_in(CLIENTS)
    assert bounded.comes_in(USERS)


def test_a_full_broker_still_takes_brokers_and_the_longest_silent_client_leaves(
    bounded: Bounded,
) -> None:
    bounded.set_for_all(max_connections=6)
    try:
        with ExitStack() as stack:
            inside = []
            for _ in range(6):
                peer = bounded.try_to_enter(CLIENTS)
                assert peer is not None
                inside.append(stack.enter_context(peer))
            for peer in inside[1:]:
                peer.api_versions()
            with pytest.raises(TimeoutError):
                bounded.try_to_enter(CLIENTS, timeout_s=1)
            assert bounded.comes_in(BROKERS)
            assert inside[0].is_closed_by_peer()
            # The one that waits was let in at last, or will be; all others are still served.
            assert all(peer.api_versions().error_code == 0 for peer in inside[2:])
    finally:
        bounded.set_for_all(max_connections=None)
    eventually(lambda: bounded.comes_in(CLIENTS))


def test_a_listener_takes_only_so_many_connections_in_a_second(bounded: Bounded) -> None:
    """Nobody is turned away there, and the other listeners do not notice."""
    name = "listener.name.clients.max.connection.creation.rate"
    scope = ("--entity-type", "brokers", "--entity-name", "0")
    bounded.alter(*scope, "--add-config", f"{name}=10")
    try:
        # How many come in before it is slow is a matter of the machine: until one has to wait.
        waiting = eventually(lambda: _has_to_wait(bounded), timeout_s=120)
        assert bounded.comes_in(BROKERS)
        waiting.socket.settimeout(60)
        assert waiting.api_versions().error_code == 0
        waiting.close()
    finally:
        bounded.alter(*scope, "--delete-config", name)
    assert all(bounded.comes_in(CLIENTS) for _ in range(100))


def _has_to_wait(bounded: Bounded) -> RawConnection | None:
    """A newcomer that nobody answers at once."""
    for _ in range(100):
        peer = RawConnection(bounded.ports[CLIENTS], timeout_s=0.05)
        try:
            peer.api_versions()
        except TimeoutError:
            peer.close()
            return RawConnection(bounded.ports[CLIENTS])
        peer.close()
    return None


# Quotas


def produce(bounded: Bounded, user: str, client_id: str) -> int:
    """Send 40 KB; for how long the broker then wants nothing, in ms."""
    with as_user(bounded.ports[USERS], user, f"{user}-secret") as connection:
        connection.client_id = client_id
        data = PartitionProduceData(index=0, records=batch([b"x" * 40_000]))
        topic = TopicProduceData(name="quotas", partition_data=[data])
        asked = ProduceRequest(acks=1, timeout_ms=60_000, topic_data=[topic])
        return connection.ask(asked, ProduceResponse, 9).throttle_time_ms


def test_users_clients_and_both_have_quotas_of_their_own(bounded: Bounded) -> None:
    with RawConnection(bounded.ports[BROKERS]) as raw:
        assert raw.create_topic("quotas") == 0
    slow, fast = "producer_byte_rate=1000", "producer_byte_rate=1000000000"
    entities = {
        ("--entity-type", "users", "--entity-name", "alice"): slow,
        (
            *("--entity-type", "users", "--entity-name", "alice"),
            *("--entity-type", "clients", "--entity-name", "fast"),
        ): fast,
        ("--entity-type", "clients", "--entity-name", "slow"): slow,
    }
    for entity, quota in entities.items():
        bounded.alter(*entity, "--add-config", quota)
    eventually(lambda: produce(bounded, "alice", "any") > 0)
    assert produce(bounded, "alice", "fast") == 0
    eventually(lambda: produce(bounded, "bob", "slow") > 0)
    assert produce(bounded, "bob", "any") == 0
    bounded.alter("--entity-type", "users", "--entity-default", "--add-config", slow)
    eventually(lambda: produce(bounded, "bob", "any") > 0)


def test_connections_without_a_name_have_the_quota_of_nobody(bounded: Bounded) -> None:
    bounded.alter(
        *("--entity-type", "users", "--entity-name", "ANONYMOUS"),
        *("--add-config", "producer_byte_rate=1000000000"),
    )
    with BrokerConnection(HOST, bounded.ports[CLIENTS], timeout_s=120) as connection:
        data = PartitionProduceData(index=0, records=batch([b"x" * 40_000]))
        topic = TopicProduceData(name="quotas", partition_data=[data])
        asked = ProduceRequest(acks=1, timeout_ms=60_000, topic_data=[topic])
        eventually(lambda: connection.ask(asked, ProduceResponse, 9).throttle_time_ms == 0)
