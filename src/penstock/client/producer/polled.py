"""PolledProducer: records in, outcomes out, on one thread that never waits.

For an event loop. librdkafka takes Python's lock anew for each record that it reports on; on a
thread of its own that is a fight with the loop for every single record. Here the loop itself asks
for the reports, many at a time, and one object holds the outcomes of all records of a batch.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import confluent_kafka

from penstock.client import librdkafka
from penstock.client.connection_log import ConnectionLog
from penstock.client.metrics.statistics import Statistics
from penstock.client.producer import partitioners
from penstock.client.settings import as_bool
from penstock.errors import PenstockError

ANY_PARTITION = -1
NOW = 0


class StoredAt(NamedTuple):
    """Where a record was stored."""

    partition: int
    offset: int
    timestamp_ms: int


Outcome: TypeAlias = StoredAt | PenstockError


class SentBatch:
    """Records that were handed over together; `when_done` is called when all outcomes are known."""

    __slots__ = ("outcomes", "waiting", "when_done")

    def __init__(self, size: int, when_done: Callable[[], None]) -> None:
        self.outcomes: list[Outcome | None] = [None] * size  # None: not known yet.
        self.waiting = size
        self.when_done = when_done

    def settle(self, index: int, outcome: Outcome) -> None:
        """Note what became of one record."""
        self.outcomes[index] = outcome
        self.waiting -= 1
        if not self.waiting:
            self.when_done()


class PolledProducer:
    """Sends bytes as they are; whoever sends also calls `poll`."""

    def __init__(self, config: Mapping[str, object]) -> None:
        chosen = librdkafka.settings_of(config, {}, "producer")
        ignore_keys = as_bool("partitioner.ignore.keys", chosen.ours["partitioner.ignore.keys"])
        _, extra = partitioners.choose(
            chosen.ours["partitioner.class"], ignore_keys=ignore_keys, settings=chosen.given
        )
        for key, value in extra.items():
            chosen.librdkafka.setdefault(key, value)
        self._connections = ConnectionLog(librdkafka.log)
        self._rd = librdkafka.create(
            confluent_kafka.Producer,
            chosen,
            Statistics(),
            "producer",
            connections=self._connections,
            has_plugins=False,
        )

    def send(
        self,
        batch: SentBatch,
        index: int,
        *,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = ANY_PARTITION,
        timestamp_ms: int = NOW,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> bool:
        """Queue one record of a batch; False: there is no room now, poll and try again."""
        named: dict[str, Any] = {"headers": list(headers)} if headers else {}
        if timestamp_ms != NOW:
            named["timestamp"] = timestamp_ms
        report = partial(_report, batch, index)
        try:
            self._rd.produce(topic, value, key, partition, on_delivery=report, **named)
        except BufferError:
            return False
        except confluent_kafka.KafkaException as error:
            batch.settle(index, librdkafka.translated(error))
        return True

    def poll(self) -> int:
        """Take in the reports there are; how many events were served."""
        served: int = librdkafka.call(self._rd.poll, 0)
        return served

    def purge(self) -> None:
        """Let everything that waits fail, and report it."""
        self._rd.purge()
        self._rd.poll(0)

    def flush(self, timeout_s: float) -> int:
        """Wait until all is reported on; how much is still waiting when the time is over."""
        left: int = librdkafka.call(self._rd.flush, timeout_s)
        return left

    def close(self) -> None:
        """Free everything; what is still under way is given up."""
        self._rd.purge()
        self._rd.close()
        self._connections.close()


def _report(
    batch: SentBatch,
    index: int,
    error: confluent_kafka.KafkaError | None,
    message: confluent_kafka.Message,
) -> None:
    if error is None:
        at: Any = message  # A stored record has all of these.
        batch.settle(index, StoredAt(at.partition(), at.offset(), at.timestamp()[1]))
    else:
        batch.settle(index, librdkafka.translated_error(error))
