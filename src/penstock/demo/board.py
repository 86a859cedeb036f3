"""What the screen shows, read back from the topics: latest prices, windows, and how fast they come.

A thread reads both topics with the ordinary consumer. Nothing is passed around the broker, so what
is seen here is what any other program would see.
"""

import json
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace

from penstock.client.consumer.consumer import Consumer
from penstock.client.values import ConsumerRecord, TopicPartition
from penstock.demo.prices import AVERAGES, PRICES
from penstock.demo.stocks import StockPrice

_TAIL = 500  # Records of each partition to find the last prices in.
_HISTORY = 24
_RATE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StockWindow:
    """The last closed window of a stock."""

    end: str
    average: float
    high: float
    low: float
    prices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StockLine:
    """One stock on the screen."""

    name: str
    history_cents: tuple[int, ...] = ()
    important: bool = False
    window: StockWindow | None = None  # None: Spark has not closed one yet.

    @property
    def cents(self) -> int | None:
        return self.history_cents[-1] if self.history_cents else None


@dataclass(slots=True)
class Board:
    """The stocks by name, and the rates; written by one thread, read by another."""

    stocks: dict[str, StockLine] = field(default_factory=dict)
    windows: int = 0
    _times: deque[float] = field(default_factory=lambda: deque(maxlen=20_000))

    def take_price(self, price: StockPrice) -> None:
        line = self.stocks.get(price.name) or StockLine(name=price.name)
        history = (*line.history_cents[-(_HISTORY - 1) :], price.total_cents)
        self.stocks[price.name] = replace(line, history_cents=history)
        self._times.append(time.monotonic())

    def take_window(self, name: str, window: StockWindow) -> None:
        line = self.stocks.get(name) or StockLine(name=name)
        # After a pause several windows of a stock come at once, in any order.
        if line.window is None or window.end >= line.window.end:
            self.stocks[name] = replace(line, window=window)
        self.windows += 1

    def prices_per_s(self) -> float:
        since = time.monotonic() - _RATE_S
        return sum(1 for at in list(self._times) if at > since) / _RATE_S

    def last_cents(self) -> dict[str, int]:
        return {name: line.cents for name, line in self.stocks.items() if line.cents is not None}


class BoardReader:
    """Keeps a board up to date until it is stopped."""

    def __init__(self, address: str) -> None:
        self.board = Board()
        self.failure: Exception | None = None
        self._stop = threading.Event()
        self._consumer: Consumer[bytes, bytes] = Consumer(
            {
                "bootstrap.servers": address,
                "client.id": "stock-board",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "max.poll.records": 2000,
            }
        )
        self._thread = threading.Thread(target=self._run, name="stock-board")

    def read_past(self) -> dict[str, int]:
        """Go to the last prices and all windows; the last price of each stock of a former run."""
        prices = self._partitions(PRICES.name)
        averages = self._partitions(AVERAGES.name)
        ends = self._consumer.end_offsets(prices)
        starts = self._consumer.beginning_offsets(prices)
        self._consumer.assign([*prices, *averages])
        for at in prices:
            self._consumer.seek(at, max(starts[at], ends[at] - _TAIL))
        self._consumer.seek_to_beginning(averages)
        give_up_s = time.monotonic() + 5
        while time.monotonic() < give_up_s:
            if all(self._consumer.position(at) >= ends[at] for at in prices):
                break
            self._take(0.1)
        return self.board.last_cents()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._consumer.close()

    def _partitions(self, topic: str) -> list[TopicPartition]:
        return [
            TopicPartition(topic, one.partition) for one in self._consumer.partitions_for(topic)
        ]

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._take(0.2)
        except Exception as error:  # noqa: BLE001  (told by the main thread)
            self.failure = error

    def _take(self, timeout_s: float) -> None:
        for record in self._consumer.poll(timeout_s):
            if record.value is None:
                continue
            if record.topic == PRICES.name:
                self.board.take_price(StockPrice.from_json(record.value))
            else:
                self.board.take_window(*_window(record))


def _window(record: "ConsumerRecord[bytes, bytes]") -> tuple[str, StockWindow]:
    raw = json.loads(record.value or b"{}")
    window = StockWindow(
        end=str(raw["window_end"]),
        average=float(raw["average"]),
        high=float(raw["high"]),
        low=float(raw["low"]),
        prices=int(raw["prices"]),
    )
    return str(raw["name"]), window
