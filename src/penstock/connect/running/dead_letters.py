"""Records that were put aside, written to their topic before offsets are committed."""

from collections.abc import Mapping
from concurrent.futures import Future

from penstock.client.admin import Admin
from penstock.client.operations.topics import NewTopic
from penstock.client.producer.producer import Producer
from penstock.client.values import ProducerRecord, RecordMetadata
from penstock.connect.errors.dead_letters import FailedStep, dead_letter
from penstock.connect.errors.policy import ErrorPolicy
from penstock.errors import TopicExists

_WAIT_S = 60.0


class DeadLetterTopic:
    """Opened with the first letter: most tasks never write one."""

    def __init__(self, policy: ErrorPolicy, client: Mapping[str, str]) -> None:
        self._policy = policy
        self._client = {**client, "acks": "all", "enable.idempotence": "true"}
        self._producer: Producer[bytes, bytes] | None = None
        self._sent: list[Future[RecordMetadata]] = []

    def report(self, failed: FailedStep) -> None:
        """Write a letter, if letters are wanted."""
        letter = dead_letter(self._policy, failed)
        if letter is None:
            return
        if self._producer is None:
            self._create(letter.topic)
            self._producer = Producer(self._client)
        record: ProducerRecord[bytes, bytes] = ProducerRecord(
            topic=letter.topic,
            key=letter.key,
            value=letter.value,
            headers=letter.headers,
            timestamp_ms=letter.timestamp_ms,
        )
        self._sent.append(self._producer.send(record))

    def settle(self) -> None:
        """Wait until all letters are stored."""
        sent, self._sent = self._sent, []
        for one in sent:
            one.result(_WAIT_S)

    def close(self) -> None:
        """Leave the brokers."""
        if self._producer is not None:
            self._producer.close(_WAIT_S)

    def _create(self, topic: str) -> None:
        with Admin({"bootstrap.servers": self._client["bootstrap.servers"]}) as admin:
            if topic in {one.name for one in admin.list_topics()}:
                return
            replicas = min(self._policy.dead_letter_replicas, len(admin.describe_cluster().brokers))
            try:
                admin.create_topics(
                    [NewTopic(name=topic, partitions=1, replication_factor=replicas)]
                )
            except TopicExists:
                return  # A sister task was faster.
