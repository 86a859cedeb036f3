"""Sends the market's prices to the topic, at a steady rate, on a thread of its own."""

import random
import threading
import time
from collections.abc import Mapping

from penstock.client.producer.producer import Producer
from penstock.client.values import RecordMetadata
from penstock.demo.prices import PRICES
from penstock.demo.stocks import IMPORTANT, ImportantStocks, Market

_TURN_S = 0.05


class Generator:
    """A thread that produces until it is stopped."""

    def __init__(self, address: str, *, per_s: int, known: Mapping[str, int]) -> None:
        self.sent = 0
        self.failure: Exception | None = None
        self._per_s = per_s
        self._market = Market(random.Random(), known)
        self._stop = threading.Event()
        self._producer: Producer[str, bytes] = Producer(
            {
                "bootstrap.servers": address,
                "client.id": "stock-exchange",
                "acks": "all",
                "linger.ms": 20,
                "importantStocks": ",".join(IMPORTANT),
            },
            key_serializer=str.encode,
            partitioner=ImportantStocks(),
        )
        self._thread = threading.Thread(target=self._run, name="stock-exchange")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Send what is under way and end."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._producer.close(timeout_s=5)

    def _run(self) -> None:
        began_s, asked = time.monotonic(), 0
        try:
            while not self._stop.wait(_TURN_S):
                wanted = int((time.monotonic() - began_s) * self._per_s)
                self._send(wanted - asked)
                asked = wanted
        except Exception as error:  # noqa: BLE001  (told by the main thread)
            self.failure = error

    def _send(self, count: int) -> None:
        for quote in self._market.quotes(count, now_ms=time.time_ns() // 1_000_000):
            self._producer.send(
                PRICES.name,
                quote.price.to_json(),
                key=quote.name,
                timestamp_ms=quote.at_ms,
                on_completion=self._count,
            )

    def _count(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        if metadata is not None:
            self.sent += 1
        elif not self._stop.is_set():
            self.failure = error
