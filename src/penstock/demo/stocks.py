"""A small stock market: what a price is, how prices move, and where each stock's prices go.

Pure: time and chance come in as arguments. Prices are the tutorial's `StockPrice`: a name, dollars
and cents, as JSON. Important stocks have a partition of their own, so that a flood of the others
never delays them.
"""

import heapq
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from penstock.client.producer.partitioners import Cluster
from penstock.errors import ConfigError

IMPORTANT = ("IBM", "UBER")
OPENING_CENTS = {
    "IBM": 27_950,
    "UBER": 9_120,
    "AAPL": 23_010,
    "AMZN": 21_870,
    "GOOG": 19_240,
    "MSFT": 48_730,
    "NFLX": 61_500,
    "SUN": 1_240,
}
_LATE_SHARE = 0.03  # Of the prices come a little late, in time to be counted,
_TOO_LATE_SHARE = 0.002  # and a few come so late that their window is closed.
_LATE_MS = (500, 2_500)
_TOO_LATE_MS = (20_000, 25_000)


@dataclass(frozen=True, slots=True)
class StockPrice:
    """What one share costs."""

    dollars: int
    cents: int
    name: str

    @classmethod
    def of(cls, name: str, total_cents: int) -> "StockPrice":
        return cls(total_cents // 100, total_cents % 100, name)

    @property
    def total_cents(self) -> int:
        return self.dollars * 100 + self.cents

    def to_json(self) -> bytes:
        return json.dumps(
            {"dollars": self.dollars, "cents": self.cents, "name": self.name}
        ).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "StockPrice":
        raw = json.loads(data)
        return cls(int(raw["dollars"]), int(raw["cents"]), str(raw["name"]))


class ImportantStocks:
    """A partitioner: stocks named in `importantStocks` have the last partition to themselves."""

    def __init__(self) -> None:
        self._important: frozenset[str] = frozenset()

    def configure(self, settings: Mapping[str, object]) -> None:
        names = str(settings.get("importantStocks", ""))
        self._important = frozenset(name.strip() for name in names.split(",") if name.strip())
        if not self._important:
            raise ConfigError("importantStocks is missing: write the names of stocks with commas")

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
        /,
    ) -> int:
        last = len(cluster.partitions_for_topic(topic)) - 1
        if last < 1 or str(key) in self._important:
            return last
        return crc32(key_bytes or b"") % last


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Quote:
    """A price at a time, to be sent now or, if it is late, at `sent_ms`."""

    sent_ms: int
    at_ms: int
    name: str
    total_cents: int

    @property
    def price(self) -> StockPrice:
        return StockPrice.of(self.name, self.total_cents)


class Market:
    """Prices that wander; some are told late."""

    def __init__(self, chance: random.Random, known: Mapping[str, int] | None = None) -> None:
        self._chance = chance
        self._cents = {**OPENING_CENTS, **(known or {})}
        self._held: list[Quote] = []

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._cents)

    def quotes(self, count: int, *, now_ms: int) -> list[Quote]:
        """The next prices to send, oldest promise first; those held back may be among them."""
        for _ in range(count):
            quote = self._next(now_ms)
            heapq.heappush(self._held, quote)
        due: list[Quote] = []
        while self._held and self._held[0].sent_ms <= now_ms:
            due.append(heapq.heappop(self._held))
        return due

    def _next(self, now_ms: int) -> Quote:
        name = self._chance.choice(self.names)
        before = self._cents[name]
        step = self._chance.gauss(0, before * 0.0008)
        # A pull to where it opened keeps a demo that runs for days in a sensible range.
        home = OPENING_CENTS.get(name, before)
        after = max(1, round(before + step + (home - before) * 0.0005))
        self._cents[name] = after
        delay_ms = self._delay_ms()
        return Quote(sent_ms=now_ms + delay_ms, at_ms=now_ms, name=name, total_cents=after)

    def _delay_ms(self) -> int:
        drawn = self._chance.random()
        if drawn < _TOO_LATE_SHARE:
            return self._chance.randint(*_TOO_LATE_MS)
        if drawn < _TOO_LATE_SHARE + _LATE_SHARE:
            return self._chance.randint(*_LATE_MS)
        return 0
