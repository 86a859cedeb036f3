"""How many connections are taken, and how often: by the broker, by each listener, from an address.

The first two wait: the door stays closed for a moment, and newcomers stand in the backlog. An
address that comes too often is turned away, and held for a moment so that it cannot ask again at
once. No pause is longer than one sample, as in Kafka.
"""

import logging
import socket
from collections.abc import Callable, Mapping
from typing import Final

from penstock.broker.quotas.clients import Meter, monotonic_ms
from penstock.broker.quotas.entities import canonical_address, entity_of
from penstock.broker.quotas.rates import QuotaWindow
from penstock.cluster.image.image import ConfigKey
from penstock.config.broker import BrokerConfig
from penstock.config.quotas import parse_quotas
from penstock.config.settings import INT_MAX
from penstock.net.crowd import CrowdLimits

log = logging.getLogger("kafka.server.KafkaServer")

RATE: Final = "connection_creation_rate"
_MOST: Final = "max.connections"
_BROKER_RATE: Final = "max.connection.creation.rate"
_ADDRESSES_MAX: Final = 10_000


def crowd_limits(config: BrokerConfig) -> CrowdLimits:
    """How many connections may be there at a time."""
    by_listener = {
        listener.name: own
        for listener in config.listeners
        if isinstance(own := config.for_listener(listener.name, _MOST), int)
    }
    return CrowdLimits(
        most=config.max_connections,
        most_by_listener=by_listener,
        most_per_ip=config.max_connections_per_ip,
        most_by_ip=_by_address(config.max_connections_per_ip_overrides),
        protected=config.inter_broker_listener_name if len(config.listeners) > 1 else None,
    )


def _by_address(limits: Mapping[str, int]) -> dict[str, int]:
    """With the addresses that names of hosts have now, as in Kafka."""
    return {address: most for host, most in limits.items() for address in _addresses_of(host)}


def _addresses_of(host: str) -> set[str]:
    address = canonical_address(host)
    if address is not None:
        return {address}
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        log.error("max.connections.per.ip.overrides: the host %s is not known", host)
        return set()
    return {canonical_address(str(one[4][0])) or host for one in found}


class ConnectionQuotas:
    """The turnstile of all listeners."""

    def __init__(
        self,
        *,
        window: QuotaWindow,
        config: Callable[[], BrokerConfig],
        now_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        self._window = window
        self._config = config
        self._now_ms = now_ms
        self._limits: dict[str | None, float] = {}  # By address; None is for all others.
        self._by_address: dict[str, Meter] = {}
        self._by_listener: dict[str | None, Meter] = {}  # None is the broker as a whole.

    def take_configs(self, configs: Mapping[ConfigKey, Mapping[str, str]]) -> None:
        """Obey what the image says now."""
        self._limits = {}
        for key, stored in configs.items():
            entity = entity_of(key) if key[0] == "ips" else None
            limit = parse_quotas(stored).get(RATE)
            if entity is None or limit is None:
                continue
            name = entity["ip"]
            self._limits[name and (canonical_address(name) or name)] = limit
        for address in list(self._by_address):
            self._set_limit(address)

    def _set_limit(self, address: str) -> None:
        limit = self._limit(address)
        if limit is None:
            del self._by_address[address]
        else:
            self._by_address[address].limit = limit

    def _limit(self, address: str) -> float | None:
        return self._limits.get(address, self._limits.get(None))

    # What a listener asks

    def turn_away_ms(self, address: str) -> int:
        """How long a newcomer is held before it is turned away; 0: it may come in."""
        if not self._limits:
            return 0
        address = canonical_address(address) or address
        limit = self._limit(address)
        if limit is None:
            return 0
        now_ms = self._now_ms()
        pause_ms = self._meter_of(address, limit, now_ms).charge(1, now_ms)
        if pause_ms:
            self._by_address[address].refund(1, now_ms)  # It did not get in.
        return pause_ms

    def close_door_ms(self, listener: str) -> int:
        """After a newcomer came in: how long the listener takes no more of them."""
        config = self._config()
        pause_ms = 0
        if not self._is_protected(listener, config):
            limit = config.max_connection_creation_rate
            pause_ms = self._charge(None, limit)
        own = config.for_listener(listener, _BROKER_RATE)
        if isinstance(own, int):
            pause_ms = max(pause_ms, self._charge(listener, own))
        return pause_ms

    @staticmethod
    def _is_protected(listener: str, config: BrokerConfig) -> bool:
        """Clients must not keep the brokers from reaching each other, if these have a listener."""
        return len(config.listeners) > 1 and listener == config.inter_broker_listener_name

    def _charge(self, listener: str | None, limit: float) -> int:
        if limit >= INT_MAX:
            self._by_listener.pop(listener, None)
            return 0
        now_ms = self._now_ms()
        meter = self._by_listener.get(listener)
        if meter is None:
            meter = self._by_listener[listener] = self._new_meter(limit, now_ms)
        meter.limit = limit
        return meter.charge(1, now_ms)

    # Meters

    def _meter_of(self, address: str, limit: float, now_ms: int) -> Meter:
        found = self._by_address.get(address)
        if found is None:
            self._make_room(now_ms)
            found = self._by_address[address] = self._new_meter(limit, now_ms)
        return found

    def _new_meter(self, limit: float, now_ms: int) -> Meter:
        longest_ms = self._window.sample_ms
        return Meter(self._window, limit=limit, now_ms=now_ms, pause_ms_max=longest_ms)

    def _make_room(self, now_ms: int) -> None:
        if len(self._by_address) < _ADDRESSES_MAX:
            return
        # What is older than the window weighs nothing any more, so forgetting it changes nothing.
        kept_ms = self._window.samples * self._window.sample_ms
        kept = [item for item in self._by_address.items() if now_ms - item[1].used_ms < kept_ms]
        kept.sort(key=lambda item: item[1].used_ms)
        self._by_address = dict(kept[-_ADDRESSES_MAX // 2 :])

    def __len__(self) -> int:
        """How many addresses are remembered."""
        return len(self._by_address)
