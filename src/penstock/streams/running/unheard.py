"""Settings of Kafka Streams that would change nothing here: who sets one is told so, and why.

Without this they would go to the clients, which pass over what they do not know.
"""

from collections.abc import Mapping

from penstock.errors import ConfigError

_DEAD_LETTERS = "errors.dead.letter.queue.topic.name says what becomes of a bad record"
_STATE = "state lies in Spark's checkpoint, in pages of RocksDB"
_NO_GROUP = "Spark places tasks, and no consumer group does"
_SERDES = "give serdes to StreamsBuilder(key=..., value=...) or to an operation"
_BATCHES = "a batch takes what is there, as commit.interval.ms and max.records.per.batch say"
_LAYOUT = "names and formats are those of Kafka Streams 4.3"

REASONS: Mapping[str, str] = {
    "acceptable.recovery.lag": _NO_GROUP,
    "allow.os.group.write.access": _STATE,
    "buffered.records.per.partition": _BATCHES,
    "default.client.supplier": "clients are Penstock's own",
    "default.deserialization.exception.handler": _DEAD_LETTERS,
    "default.dsl.store": _STATE,
    "default.list.key.serde.inner": _SERDES,
    "default.list.key.serde.type": _SERDES,
    "default.list.value.serde.inner": _SERDES,
    "default.list.value.serde.type": _SERDES,
    "default.production.exception.handler": "a record that cannot be written fails its batch",
    "default.timestamp.extractor": "give stream() an intake=..., or call restamp on it",
    "deserialization.exception.handler": _DEAD_LETTERS,
    "dsl.store.format": _STATE,
    "dsl.store.suppliers.class": _STATE,
    "ensure.explicit.internal.resource.naming": "each operation takes a name, and a store",
    "group.protocol": _NO_GROUP,
    "max.task.idle.ms": _BATCHES,
    "max.warmup.replicas": "there are no standbys: a stage goes on from its checkpoint",
    "poll.ms": _BATCHES,
    "probing.rebalance.interval.ms": _NO_GROUP,
    "processing.exception.handler": "a function that fails fails its batch, which is tried again",
    "processing.exception.handler.global.enabled": "a function that fails fails its batch",
    "processor.wrapper.class": "make the processor in the function that process is given",
    "production.exception.handler": "a record that cannot be written fails its batch",
    "rack.aware.assignment.non_overlap_cost": _NO_GROUP,
    "rack.aware.assignment.strategy": _NO_GROUP,
    "rack.aware.assignment.tags": _NO_GROUP,
    "rack.aware.assignment.traffic_cost": _NO_GROUP,
    "rocksdb.config.setter": "give Spark's spark.sql.streaming.stateStore.rocksdb settings",
    "state.cleanup.delay.ms": "call clean_up, or penstock streams reset",
    "state.cleanup.dir.max.age.ms": "call clean_up, or penstock streams reset",
    "task.assignor.class": _NO_GROUP,
    "task.timeout.ms": "a stage that fails is tried again, --max-restarts times",
    "upgrade.from": _LAYOUT,
    "window.size.ms": "give time_windowed(serde, size_ms=...)",
    "windowed.inner.class.serde": "give time_windowed(serde, size_ms=...)",
}
_PREFIXES: Mapping[str, str] = {
    **dict.fromkeys(
        ("main.consumer.", "restore.consumer.", "global.consumer.", "consumer.", "producer."),
        "all clients have the same settings, without a prefix",
    ),
    "admin.": "all clients have the same settings, without a prefix",
    "topic.": "change internal topics with kafka-configs, once they are there",
}


def refuse_unheard(given: Mapping[str, object]) -> None:
    """ConfigError names the first setting that would change nothing."""
    for name in given:
        reason = REASONS.get(name) or next(
            (told for prefix, told in _PREFIXES.items() if name.startswith(prefix)), None
        )
        if reason is not None:
            raise ConfigError(f"{name} is not supported: {reason}.")
