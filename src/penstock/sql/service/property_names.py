"""The properties that SET and a request may name, as ksqlDB resolves them.

A name that nobody knows is refused: a misspelt one would change nothing without a word.
"""

from typing import Final

from penstock.errors import ConfigError

# Of Kafka's producers, consumers, administrators and Streams. Queries go by a few of them, and the
# others are taken as scripts for ksqlDB set them.
_KAFKAS_NAMES: Final = """
    acceptable.recovery.lag acks allow.auto.create.topics allow.os.group.write.access
    application.id application.server auto.commit.interval.ms auto.offset.reset
    batch.size bootstrap.controllers bootstrap.servers buffer.memory
    buffered.records.per.partition built.in.metrics.version cache.max.bytes.buffering
    check.crcs client.dns.lookup client.id client.rack commit.interval.ms
    compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    config.providers connections.max.idle.ms default.api.timeout.ms
    default.client.supplier default.deserialization.exception.handler default.dsl.store
    default.key.serde default.list.key.serde.inner default.list.key.serde.type
    default.list.value.serde.inner default.list.value.serde.type
    default.production.exception.handler default.timestamp.extractor default.value.serde
    delivery.timeout.ms deserialization.exception.handler dsl.store.format
    dsl.store.suppliers.class enable.auto.commit enable.idempotence enable.metrics.push
    ensure.explicit.internal.resource.naming errors.dead.letter.queue.topic.name
    exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
    interceptor.classes internal.throw.on.fetch.stable.offset.unsupported
    isolation.level key.deserializer key.serializer linger.ms log.summary.interval.ms
    max.block.ms max.in.flight.requests.per.connection max.partition.fetch.bytes
    max.poll.interval.ms max.poll.records max.request.size max.task.idle.ms
    max.warmup.replicas metadata.max.age.ms metadata.max.idle.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms
    num.standby.replicas num.stream.threads partition.assignment.strategy
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
    partitioner.class partitioner.ignore.keys poll.ms probing.rebalance.interval.ms
    processing.exception.handler processing.exception.handler.global.enabled
    processing.guarantee processor.wrapper.class production.exception.handler
    rack.aware.assignment.non_overlap_cost rack.aware.assignment.strategy
    rack.aware.assignment.tags rack.aware.assignment.traffic_cost receive.buffer.bytes
    reconnect.backoff.max.ms reconnect.backoff.ms repartition.purge.interval.ms
    replication.factor request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms
    rocksdb.config.setter send.buffer.bytes session.timeout.ms
    share.acknowledgement.mode share.acquire.mode socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms state.cleanup.delay.ms
    state.cleanup.dir.max.age.ms state.dir statestore.cache.max.bytes
    task.assignor.class task.timeout.ms topology.optimization transaction.timeout.ms
    transaction.two.phase.commit.enable transactional.id upgrade.from value.deserializer
    value.serializer window.size.ms windowed.inner.class.serde
    windowstore.changelog.additional.retention.ms
"""
_OF_KAFKA: Final = frozenset(_KAFKAS_NAMES.split())
_FAMILIES: Final = ("ksql.", "penstock.", "ssl.", "sasl.", "security.", "topic.", "errors.")
_OF_CLIENTS: Final = (
    "ksql.streams.",
    "main.consumer.",
    "restore.consumer.",
    "global.consumer.",
    "consumer.",
    "producer.",
    "admin.",
)


def check_name(name: str) -> None:
    """ConfigError for a name that is no property."""
    plain = name
    for prefix in _OF_CLIENTS:
        plain = plain.removeprefix(prefix)
    if plain not in _OF_KAFKA and not plain.startswith(_FAMILIES):
        raise ConfigError(
            f"Not recognizable as ksql, streams, consumer, or producer property: '{name}'"
        )
