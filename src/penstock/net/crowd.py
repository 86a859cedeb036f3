"""How many connections a broker holds, over all its listeners, and whether one more may come.

The listener of the brokers is protected, as in Kafka (KIP-402): clients that fill the broker do
not keep the brokers from each other; somebody who has been silent longest leaves instead.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdLimits:
    """How many may be there at a time."""

    most: int  # In the broker.
    most_by_listener: Mapping[str, int] = field(default_factory=dict)  # Not in it: no limit.
    most_per_ip: int
    most_by_ip: Mapping[str, int] = field(default_factory=dict)
    protected: str | None = None  # The listener whose newcomers the broker's limit does not stop.


class Entrance(Protocol):
    """A listener, as the crowd knows it."""

    name: str

    def look_again(self) -> None:
        """There may be room now."""
        ...

    def longest_silent_s(self) -> float | None:
        """When the connection that has been silent longest was last heard; None: there is none."""
        ...

    def close_longest_silent(self) -> None: ...


class Crowd:
    """All connections of a broker, counted."""

    def __init__(self, limits: CrowdLimits) -> None:
        self._limits = limits
        self._doors: list[Entrance] = []
        self._by_listener: Counter[str] = Counter()
        self._by_ip: Counter[str] = Counter()
        self.total = 0

    def add_door(self, door: Entrance) -> None:
        self._doors.append(door)

    def obey(self, limits: CrowdLimits) -> None:
        """Take other limits; who is there already stays."""
        if limits != self._limits:
            self._limits = limits
            self._look_again()

    def _look_again(self) -> None:
        for door in self._doors:
            door.look_again()

    def has_room(self, listener: str) -> bool:
        limits = self._limits
        own_most = limits.most_by_listener.get(listener)
        if own_most is not None and self._by_listener[listener] >= own_most:
            return False
        return listener == limits.protected or self.total < limits.most

    def most_from(self, ip: str) -> int | None:
        """The limit of an address that has as many as it may; None: it may have one more."""
        limits, ip = self._limits, canonical(ip)
        most = limits.most_by_ip.get(ip, limits.most_per_ip)
        return most if self._by_ip[ip] >= most else None

    def enter(self, listener: str, ip: str) -> None:
        self.total += 1
        self._by_listener[listener] += 1
        self._by_ip[canonical(ip)] += 1
        limits = self._limits
        if self.total > limits.most:
            self._make_room(limits.protected)

    def leave(self, listener: str, ip: str) -> None:
        ip = canonical(ip)
        self.total -= 1
        self._by_listener[listener] -= 1
        self._by_ip[ip] -= 1
        if not self._by_ip[ip]:
            del self._by_ip[ip]
        self._look_again()

    def _make_room(self, protected: str | None) -> None:
        since = {
            silent_s: door
            for door in self._doors
            if door.name != protected and (silent_s := door.longest_silent_s()) is not None
        }
        if since:
            since[min(since)].close_longest_silent()


def canonical(ip: str) -> str:
    """One spelling for an address, whether it came over IPv4 or as IPv4 over IPv6."""
    return ip.removeprefix("::ffff:")
