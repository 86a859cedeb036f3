"""A message of librdkafka as a record: deserialized, with its place and time."""

from collections.abc import Mapping
from typing import Generic

import confluent_kafka

from penstock.client.headers import NO_HEADERS, RecordHeaders
from penstock.client.serialization import AnyDeserializer, ReadyDeserializer
from penstock.client.values import ConsumerRecord, K, TopicPartition, V

_TIMESTAMP_TYPES = {1: "CreateTime", 2: "LogAppendTime"}


class RecordDecoder(Generic[K, V]):
    """The deserializers of one consumer at work."""

    def __init__(
        self,
        key: AnyDeserializer | None,
        value: AnyDeserializer | None,
        settings: Mapping[str, object],
    ) -> None:
        self._key = ReadyDeserializer(key, settings, "key")
        self._value = ReadyDeserializer(value, settings, "value")

    def __call__(
        self, message: confluent_kafka.Message, partition: TopicPartition
    ) -> ConsumerRecord[K, V]:
        """The record; raises SerializationError where its bytes make no sense."""
        key, value = message.key(), message.value()
        kind, timestamp_ms = message.timestamp()
        headers = message.headers()
        return ConsumerRecord(
            partition.topic,
            partition.partition,
            message.offset() or 0,
            timestamp_ms,
            _TIMESTAMP_TYPES.get(kind, "NoTimestampType"),
            self._key(partition.topic, key),
            self._value(partition.topic, value),
            RecordHeaders(headers) if headers else NO_HEADERS,  # type: ignore[arg-type]
            message.leader_epoch(),
            -1 if key is None else len(key),
            -1 if value is None else len(value),
        )

    def close(self) -> None:
        """Close both deserializers."""
        self._key.close()
        self._value.close()
