"""BulkConsumer: reads as fast as librdkafka hands over, and only counts.

For tools that measure. `Consumer` is the one for programs.
"""

import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import confluent_kafka

from penstock.client import librdkafka
from penstock.client.connection_log import ConnectionLog
from penstock.client.metrics.client_metrics import consumer_metrics
from penstock.client.metrics.statistics import Statistics
from penstock.client.values import Metrics

_NO_GROUP = "penstock-no-group"  # librdkafka wants a group id even of one who joins none.
_TIMEOUT_S = 30.0


class BulkConsumer:
    """Counts records and bytes. Not for several threads."""

    def __init__(self, config: Mapping[str, object]) -> None:
        chosen = librdkafka.settings_of(config, {}, "consumer")
        self.group_id = chosen.librdkafka.get("group.id")
        if self.group_id is None:
            chosen.librdkafka["group.id"] = _NO_GROUP
            chosen.librdkafka["enable.auto.commit"] = False
        chosen.librdkafka["enable.auto.offset.store"] = True
        self._client_id = str(chosen.librdkafka["client.id"])
        self._statistics = Statistics()
        self._connections = ConnectionLog(librdkafka.log)
        self._rd = librdkafka.create(
            confluent_kafka.Consumer,
            chosen,
            self._statistics,
            "consumer",
            connections=self._connections,
            has_plugins=False,
        )

    def topics(self) -> list[str]:
        """The names of all topics."""
        return sorted(librdkafka.call(self._rd.list_topics, timeout=_TIMEOUT_S).topics)

    def subscribe(self, topics: Sequence[str] | re.Pattern[str]) -> None:
        """Read as a member of the group."""
        names = [topics.pattern] if isinstance(topics, re.Pattern) else list(topics)
        librdkafka.call(self._rd.subscribe, names)

    def assign_all(self, topics: Sequence[str], *, from_beginning: bool) -> None:
        """Read every partition of the topics."""
        metadata = librdkafka.call(self._rd.list_topics, timeout=_TIMEOUT_S)
        start = confluent_kafka.OFFSET_BEGINNING if from_beginning else confluent_kafka.OFFSET_END
        wanted = [
            confluent_kafka.TopicPartition(one.topic, one.partition, start)
            for topic in topics
            for one in librdkafka.partitions_of(metadata, topic)
        ]
        # Asked for as times: librdkafka's own way to the ends takes half a second longer.
        found = librdkafka.call(self._rd.offsets_for_times, wanted, timeout=_TIMEOUT_S)
        librdkafka.call(self._rd.assign, found)

    def take(self, count_max: int, timeout_s: float) -> tuple[int, int]:
        """How many records, and how many bytes of keys and values, came meanwhile."""
        messages = librdkafka.call(self._rd.consume, count_max, timeout=timeout_s)
        count = size = 0
        for message in messages:
            error = message.error()
            if error is None:
                count += 1
                size += len(message) + len(message.key() or b"")
            elif not librdkafka.is_passing(error):
                raise librdkafka.translated_error(error)
        return count, size

    def metrics(self) -> Metrics:
        """Kafka's consumer metrics, over the last half minute."""
        return consumer_metrics(self._statistics.documents(), self._client_id)

    def close(self) -> None:
        """Leave the group and free everything."""
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
