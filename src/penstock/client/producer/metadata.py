"""What a producer knows of topics: enough to wait for a new one, and to choose partitions.

Kafka's `send` waits until the cluster has told about the topic; librdkafka's does not. The wait is
here, once per topic, together with the view of the cluster that partitioners are given.
"""

import threading
import time

import confluent_kafka

from penstock.client import librdkafka
from penstock.client.errors import KafkaTimeoutError
from penstock.client.values import PartitionInfo
from penstock.errors import LeaderNotAvailable, UnknownTopicOrPartition, error_for

_PAUSE_S = 0.05
_AGE_S_MAX = 300.0  # metadata.max.age.ms: a partitioner learns of new partitions by then.
_WORTH_WAITING = (UnknownTopicOrPartition.code, LeaderNotAvailable.code)


class ProducerMetadata:
    """The partitions of the topics that were sent to. Safe for threads."""

    def __init__(self, rd: confluent_kafka.Producer, max_block_s: float) -> None:
        self._rd = rd
        self._max_block_s = max_block_s
        self._known: dict[str, list[PartitionInfo]] = {}
        self._learned_s: dict[str, float] = {}
        self._lock = threading.Lock()

    def wait_for(self, topic: str, deadline_s: float) -> None:
        """Return once the topic is known; KafkaTimeoutError at the deadline."""
        if topic not in self._known:
            self._ask(topic, deadline_s)

    def refresh(self, topic: str) -> list[PartitionInfo]:
        """Ask the cluster now."""
        return self._ask(topic, time.monotonic() + self._max_block_s)

    def partitions_for_topic(self, topic: str, /) -> list[PartitionInfo]:
        """All partitions of a topic, in order."""
        age_s = time.monotonic() - self._learned_s.get(topic, 0.0)
        if topic not in self._known or age_s > _AGE_S_MAX:
            return self.refresh(topic)
        return self._known[topic]

    def available_partitions_for_topic(self, topic: str, /) -> list[PartitionInfo]:
        """Those that have a leader now."""
        return [p for p in self.partitions_for_topic(topic) if p.leader is not None]

    def _ask(self, topic: str, deadline_s: float) -> list[PartitionInfo]:
        with self._lock:
            while True:
                found = self._ask_once(topic, deadline_s)
                if found:
                    self._known[topic] = found
                    self._learned_s[topic] = time.monotonic()
                    return found
                if time.monotonic() + _PAUSE_S > deadline_s:
                    raise self._absent(topic)
                time.sleep(_PAUSE_S)

    def _ask_once(self, topic: str, deadline_s: float) -> list[PartitionInfo]:
        """The partitions, or nothing where waiting may help."""
        timeout_s = max(0.001, deadline_s - time.monotonic())
        try:
            metadata = self._rd.list_topics(topic, timeout=timeout_s)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() > 0:
                raise librdkafka.translated(error) from error
            raise self._absent(topic) from error
        failed = metadata.topics[topic].error
        if failed is None:
            return librdkafka.partitions_of(metadata, topic)
        if failed.code() in _WORTH_WAITING:
            return []
        raise error_for(failed.code(), failed.str())

    def _absent(self, topic: str) -> KafkaTimeoutError:
        return KafkaTimeoutError(
            f"Topic {topic} not present in metadata after {self._max_block_s * 1000:g} ms. "
            "Is a broker running at bootstrap.servers?"
        )
