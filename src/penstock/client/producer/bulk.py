"""BulkProducer: many records with little ado, for tools that load topics or measure.

No future per record and no thread: the caller sends, calls `serve` now and then, and reads from
counters what came of it. `Producer` is the one for programs.
"""

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import confluent_kafka

from penstock.client import librdkafka
from penstock.client.connection_log import ConnectionLog
from penstock.client.errors import BufferExhaustedError
from penstock.client.headers import Headers, record_headers
from penstock.client.metrics.client_metrics import producer_metrics
from penstock.client.metrics.statistics import Statistics
from penstock.client.producer import partitioners
from penstock.client.settings import as_bool
from penstock.client.values import Metrics
from penstock.errors import PenstockError

_FOREVER = -1.0
_FULL_PAUSE_S = 0.005


class BulkProducer:
    """Sends bytes as they are. Not for several threads, but `serve` may run on a second one."""

    def __init__(self, config: Mapping[str, object], *, measure_latency: bool = False) -> None:
        chosen = librdkafka.settings_of(config, {}, "producer")
        ignore_keys = as_bool("partitioner.ignore.keys", chosen.ours["partitioner.ignore.keys"])
        _, extra = partitioners.choose(
            chosen.ours["partitioner.class"], ignore_keys=ignore_keys, settings=chosen.given
        )
        for key, value in extra.items():
            chosen.librdkafka.setdefault(key, value)
        # Without an interest in latencies only failures are worth a call back into Python.
        chosen.librdkafka["delivery.report.only.error"] = not measure_latency
        self.latencies_s: list[float] = []  # Of records stored since the caller last cleared it.
        self.failures: list[PenstockError] = []
        self._max_block_s = chosen.ms("max.block.ms") / 1000
        self._client_id = str(chosen.librdkafka["client.id"])
        self._statistics = Statistics()
        self._connections = ConnectionLog(librdkafka.log)
        self._report = self._reporter()
        self._rd = librdkafka.create(
            confluent_kafka.Producer,
            chosen,
            self._statistics,
            "producer",
            connections=self._connections,
            has_plugins=False,
        )

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers = (),
    ) -> None:
        """Queue one record, in order; waits while the buffer is full, at most max.block.ms."""
        named: dict[str, Any] = {"headers": list(record_headers(headers))} if headers else {}
        deadline_s = 0.0
        while True:
            try:
                self._rd.produce(topic, value, key, on_delivery=self._report, **named)
                return
            except BufferError:
                deadline_s = self._wait_for_room(deadline_s)
            except confluent_kafka.KafkaException as error:
                raise librdkafka.translated(error) from error

    def send_batch(self, topic: str, values: Sequence[bytes]) -> None:
        """Queue many records in one call; when the buffer fills, their order may change."""
        messages: list[dict[str, Any]] = [{"value": value} for value in values]
        deadline_s = 0.0
        while messages:
            queued = self._rd.produce_batch(topic, messages, on_delivery=self._report)
            if queued == len(messages):
                return
            messages = [{"value": m["value"]} for m in messages if "_error" in m]
            deadline_s = self._wait_for_room(deadline_s)

    def serve(self, timeout_s: float = 0.0) -> None:
        """Take in what librdkafka has to report."""
        librdkafka.call(self._rd.poll, timeout_s)

    def flush(self, timeout_s: float | None = None) -> int:
        """Wait until all is sent; how many are still waiting when the time is over."""
        left: int = librdkafka.call(self._rd.flush, _FOREVER if timeout_s is None else timeout_s)
        return left

    def metrics(self) -> Metrics:
        """Kafka's producer metrics, over the last half minute."""
        return producer_metrics(self._statistics.documents(), self._client_id, len(self.failures))

    def init_transactions(self) -> None:
        """Register the transactional id."""
        librdkafka.call(self._rd.init_transactions, self._max_block_s)

    def begin_transaction(self) -> None:
        """Start a transaction."""
        librdkafka.call(self._rd.begin_transaction)

    def commit_transaction(self) -> None:
        """Send what is left and commit."""
        librdkafka.call(self._rd.commit_transaction, self._max_block_s)

    def close(self) -> None:
        """Drop what is still queued and free everything; flush first."""
        self._rd.purge()
        self._rd.close()
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _reporter(self) -> Any:
        """One flat function: it runs once per record."""
        latencies_s, failures = self.latencies_s, self.failures

        def report(error: confluent_kafka.KafkaError | None, message: Any) -> None:
            if error is None:
                latencies_s.append(message.latency())
            else:
                failures.append(librdkafka.translated_error(error))

        return report

    def _wait_for_room(self, deadline_s: float) -> float:
        """Serve for a moment; the deadline is set when the waiting begins."""
        now_s = time.monotonic()
        deadline_s = deadline_s or now_s + self._max_block_s
        if now_s > deadline_s:
            raise BufferExhaustedError(
                f"No room in buffer.memory for a record within {self._max_block_s:g} s."
            )
        librdkafka.call(self._rd.poll, _FULL_PAUSE_S)
        return deadline_s
