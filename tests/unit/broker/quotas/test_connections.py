"""The turnstile: how often the broker, a listener and an address get a new connection."""

from typing import Any

import pytest

from penstock.broker.quotas import connections
from penstock.broker.quotas.connections import ConnectionQuotas, crowd_limits
from penstock.broker.quotas.rates import QuotaWindow
from penstock.config.broker import BrokerConfig

WINDOW = QuotaWindow(samples=11, sample_ms=1000)
TWO_LISTENERS = {
    "listeners": "OUT://127.0.0.1:9092,IN://127.0.0.1:9093",
    "listener.security.protocol.map": "OUT:PLAINTEXT,IN:PLAINTEXT",
    "inter.broker.listener.name": "IN",
}


class Door:
    """Connection quotas with a clock and settings that a test can change."""

    def __init__(self, **settings: str) -> None:
        self.now_ms = 3
        self.config = BrokerConfig({key.replace("_", "."): v for key, v in settings.items()})
        self.quotas = ConnectionQuotas(
            window=WINDOW, config=lambda: self.config, now_ms=lambda: self.now_ms
        )

    def limit(self, **rates: str) -> None:
        """Rates by address; `default` for all others, underscores for dots."""
        self.quotas.take_configs(
            {
                ("ips", "<default>" if ip == "default" else ip.lstrip("_").replace("_", ".")): {
                    "connection_creation_rate": rate
                }
                for ip, rate in rates.items()
            }
        )


def test_names_of_hosts_have_limits_by_their_addresses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lookup(host: str, *_: object, **__: object) -> list[Any]:
        if host != "client.example.org":
            raise OSError
        return [(0, 0, 0, "", (address, 0)) for address in ("10.0.0.7", "2001:db8::7")]

    monkeypatch.setattr("socket.getaddrinfo", lookup)
    named = "client.example.org:7,0:0:0:0:0:0:0:1:6,10.0.0.5:5,nobody.example.org:3"
    limits = crowd_limits(BrokerConfig({"max.connections.per.ip.overrides": named}))
    assert limits.most_by_ip == {"10.0.0.7": 7, "2001:db8::7": 7, "::1": 6, "10.0.0.5": 5}
    assert "nobody.example.org is not known" in caplog.text


def test_without_limits_everybody_comes_in() -> None:
    door = Door()
    assert [door.quotas.turn_away_ms("10.0.0.1") for _ in range(5000)] == [0] * 5000
    assert [door.quotas.close_door_ms("PLAINTEXT") for _ in range(5000)] == [0] * 5000
    assert len(door.quotas) == 0


def test_an_address_that_comes_too_often_is_turned_away_for_a_second_at_most() -> None:
    door = Door()
    door.limit(_10_0_0_1="2")
    assert [door.quotas.turn_away_ms("10.0.0.1") for _ in range(20)] == [0] * 20
    # Those turned away do not count, so the next one finds the same.
    assert [door.quotas.turn_away_ms("10.0.0.1") for _ in range(3)] == [500] * 3
    assert door.quotas.turn_away_ms("10.0.0.2") == 0
    door.now_ms += 500
    assert door.quotas.turn_away_ms("10.0.0.1") == 0


def test_a_pause_is_never_longer_than_a_sample() -> None:
    door = Door()
    door.limit(_10_0_0_1="100")
    for _ in range(1000):
        door.quotas.turn_away_ms("10.0.0.1")
    door.limit(_10_0_0_1="1")
    assert door.quotas.turn_away_ms("10.0.0.1") == 1000


def test_an_address_without_its_own_rate_has_the_default_for_itself() -> None:
    door = Door()
    door.limit(default="1", _10_0_0_9="1000")
    for address in ("10.0.0.1", "10.0.0.2"):
        assert [door.quotas.turn_away_ms(address) for _ in range(11)] == [0] * 10 + [1000]
    assert [door.quotas.turn_away_ms("10.0.0.9") for _ in range(100)] == [0] * 100
    door.limit()
    assert door.quotas.turn_away_ms("10.0.0.1") == 0
    assert len(door.quotas) == 0


def test_an_address_is_known_in_any_spelling() -> None:
    door = Door()
    door.quotas.take_configs({("ips", "%3A%3A1"): {"connection_creation_rate": "1"}})
    assert [door.quotas.turn_away_ms("0:0:0:0:0:0:0:1") for _ in range(11)][-1] == 1000
    door.limit(_10_0_0_1="1")
    assert [door.quotas.turn_away_ms("::ffff:10.0.0.1") for _ in range(11)][-1] == 1000


def test_the_broker_takes_so_many_in_a_second() -> None:
    door = Door(max_connection_creation_rate="5")
    pauses = [door.quotas.close_door_ms("PLAINTEXT") for _ in range(52)]
    assert pauses == [0] * 50 + [200, 400]


def test_a_changed_rate_acts_at_once() -> None:
    door = Door(max_connection_creation_rate="5")
    for _ in range(51):
        door.quotas.close_door_ms("PLAINTEXT")
    door.config = BrokerConfig({"max.connection.creation.rate": "100"})
    assert door.quotas.close_door_ms("PLAINTEXT") == 0
    door.config = BrokerConfig({})
    assert door.quotas.close_door_ms("PLAINTEXT") == 0


def test_a_listener_may_have_a_rate_of_its_own() -> None:
    door = Door()
    door.config = BrokerConfig(
        {**TWO_LISTENERS, "listener.name.out.max.connection.creation.rate": "1"}
    )
    assert [door.quotas.close_door_ms("OUT") for _ in range(11)] == [0] * 10 + [1000]
    assert [door.quotas.close_door_ms("IN") for _ in range(11)] == [0] * 11


def test_clients_do_not_keep_brokers_from_each_other() -> None:
    door = Door()
    door.config = BrokerConfig({**TWO_LISTENERS, "max.connection.creation.rate": "1"})
    assert [door.quotas.close_door_ms("OUT") for _ in range(11)][-1] == 1000
    for _ in range(5):
        assert door.quotas.close_door_ms("IN") == 0


def test_many_addresses_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_ADDRESSES_MAX", 100)
    door = Door()
    door.limit(default="1")
    for number in range(1000):
        door.now_ms += 1
        door.quotas.turn_away_ms(f"10.0.{number // 250}.{number % 250}")
        assert len(door.quotas) <= 100
