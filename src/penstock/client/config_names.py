"""The names of settings as constants, as Kafka's Java clients have them.

`{ProducerConfig.LINGER_MS_CONFIG: 20}` instead of `{"linger.ms": 20}`: a typing mistake is then an
AttributeError. What the settings mean is in `settings`.
"""

from typing import Final


class _Shared:
    """Settings of both clients."""

    BOOTSTRAP_SERVERS_CONFIG: Final = "bootstrap.servers"
    CLIENT_ID_CONFIG: Final = "client.id"
    CLIENT_RACK_CONFIG: Final = "client.rack"
    CONNECTIONS_MAX_IDLE_MS_CONFIG: Final = "connections.max.idle.ms"
    INTERCEPTOR_CLASSES_CONFIG: Final = "interceptor.classes"
    METADATA_MAX_AGE_CONFIG: Final = "metadata.max.age.ms"
    RECEIVE_BUFFER_CONFIG: Final = "receive.buffer.bytes"
    RECONNECT_BACKOFF_MS_CONFIG: Final = "reconnect.backoff.ms"
    REQUEST_TIMEOUT_MS_CONFIG: Final = "request.timeout.ms"
    RETRY_BACKOFF_MS_CONFIG: Final = "retry.backoff.ms"
    SECURITY_PROTOCOL_CONFIG: Final = "security.protocol"
    SEND_BUFFER_CONFIG: Final = "send.buffer.bytes"


class ProducerConfig(_Shared):
    """Settings of a producer."""

    ACKS_CONFIG: Final = "acks"
    BATCH_SIZE_CONFIG: Final = "batch.size"
    BUFFER_MEMORY_CONFIG: Final = "buffer.memory"
    COMPRESSION_TYPE_CONFIG: Final = "compression.type"
    DELIVERY_TIMEOUT_MS_CONFIG: Final = "delivery.timeout.ms"
    ENABLE_IDEMPOTENCE_CONFIG: Final = "enable.idempotence"
    KEY_SERIALIZER_CLASS_CONFIG: Final = "key.serializer"
    LINGER_MS_CONFIG: Final = "linger.ms"
    MAX_BLOCK_MS_CONFIG: Final = "max.block.ms"
    MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION: Final = "max.in.flight.requests.per.connection"
    MAX_REQUEST_SIZE_CONFIG: Final = "max.request.size"
    PARTITIONER_CLASS_CONFIG: Final = "partitioner.class"
    PARTITIONER_IGNORE_KEYS_CONFIG: Final = "partitioner.ignore.keys"
    RETRIES_CONFIG: Final = "retries"
    TRANSACTIONAL_ID_CONFIG: Final = "transactional.id"
    TRANSACTION_TIMEOUT_CONFIG: Final = "transaction.timeout.ms"
    VALUE_SERIALIZER_CLASS_CONFIG: Final = "value.serializer"


class ConsumerConfig(_Shared):
    """Settings of a consumer."""

    AUTO_COMMIT_INTERVAL_MS_CONFIG: Final = "auto.commit.interval.ms"
    AUTO_OFFSET_RESET_CONFIG: Final = "auto.offset.reset"
    CHECK_CRCS_CONFIG: Final = "check.crcs"
    DEFAULT_API_TIMEOUT_MS_CONFIG: Final = "default.api.timeout.ms"
    ENABLE_AUTO_COMMIT_CONFIG: Final = "enable.auto.commit"
    FETCH_MAX_BYTES_CONFIG: Final = "fetch.max.bytes"
    FETCH_MAX_WAIT_MS_CONFIG: Final = "fetch.max.wait.ms"
    FETCH_MIN_BYTES_CONFIG: Final = "fetch.min.bytes"
    GROUP_ID_CONFIG: Final = "group.id"
    GROUP_INSTANCE_ID_CONFIG: Final = "group.instance.id"
    GROUP_PROTOCOL_CONFIG: Final = "group.protocol"
    HEARTBEAT_INTERVAL_MS_CONFIG: Final = "heartbeat.interval.ms"
    ISOLATION_LEVEL_CONFIG: Final = "isolation.level"
    KEY_DESERIALIZER_CLASS_CONFIG: Final = "key.deserializer"
    MAX_PARTITION_FETCH_BYTES_CONFIG: Final = "max.partition.fetch.bytes"
    MAX_POLL_INTERVAL_MS_CONFIG: Final = "max.poll.interval.ms"
    MAX_POLL_RECORDS_CONFIG: Final = "max.poll.records"
    PARTITION_ASSIGNMENT_STRATEGY_CONFIG: Final = "partition.assignment.strategy"
    SESSION_TIMEOUT_MS_CONFIG: Final = "session.timeout.ms"
    VALUE_DESERIALIZER_CLASS_CONFIG: Final = "value.deserializer"
