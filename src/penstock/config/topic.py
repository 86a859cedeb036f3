"""A topic's configuration: its settings, what an operator may write, what holds in the end.

A topic states only what it wants otherwise; everything else follows the broker's settings of the
same meaning, whenever those change. The refusals are worded as Apache Kafka words them, because
they travel to clients: handlers answer INVALID_CONFIG with them.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from penstock.config.broker import BrokerConfig
from penstock.config.settings import (
    ACTS,
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INERT,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    LOW,
    MEDIUM,
    STRING,
    Bounds,
    Matching,
    OneOf,
    Setting,
    SettingTable,
    Value,
    attribute_name,
)
from penstock.errors import ConfigError

_REPLICAS: Final = Matching(
    r"\*|\d+:\d+",
    "* or partition:broker,partition:broker",
    "must be the literal '*' or a list of replicas in the following format:"
    " [partitionId]:[brokerId],[partitionId]:[brokerId],...",
)

_STRATEGY: Final = Matching(
    r"(io\.confluent\.kafka\.serializers\.subject\.)?(Topic|Record|TopicRecord)NameStrategy",
    "TopicNameStrategy, RecordNameStrategy or TopicRecordNameStrategy",
    "must be TopicNameStrategy, RecordNameStrategy or TopicRecordNameStrategy, with or without the"
    " package io.confluent.kafka.serializers.subject",
)
_BY_TOPIC: Final = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
_TOPIC_NAME: Final = Matching(
    r"[a-zA-Z0-9._-]{1,249}", "the name of a topic", "must be the name of a topic"
)

# fmt: off
TOPIC_SETTINGS: Final = SettingTable((
    Setting("cleanup.policy", LIST, ("delete",), OneOf("compact", "delete"), MEDIUM, CLUSTER_WIDE,
            ACTS, "What happens to old segments: delete, compact, or both; empty: nothing."),
    Setting("compression.type", STRING, "producer",
            OneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
            MEDIUM, CLUSTER_WIDE,
            ACTS, "The compression on disk; producer keeps what was sent."),
    Setting("compression.gzip.level", INT, -1, Bounds(1, 9, also=(-1,)), MEDIUM, CLUSTER_WIDE,
            ACTS, "The level for gzip; -1 is gzip's own."),
    Setting("compression.lz4.level", INT, 9, Bounds(1, 17), MEDIUM, CLUSTER_WIDE,
            ACTS, "The level for lz4."),
    Setting("compression.zstd.level", INT, 3, Bounds(-131_072, 22), MEDIUM, CLUSTER_WIDE,
            ACTS, "The level for zstd."),
    Setting("confluent.key.schema.validation", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE,
            ACTS, "Whether keys must name a schema that is registered for the topic."),
    Setting("confluent.key.subject.name.strategy", STRING, _BY_TOPIC, _STRATEGY, MEDIUM,
            CLUSTER_WIDE, ACTS, "Under which subject the schemas of keys are registered."),
    Setting("confluent.value.schema.validation", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE,
            ACTS, "Whether values must name a schema that is registered for the topic."),
    Setting("confluent.value.subject.name.strategy", STRING, _BY_TOPIC, _STRATEGY, MEDIUM,
            CLUSTER_WIDE, ACTS, "Under which subject the schemas of values are registered."),
    Setting("delete.retention.ms", LONG, 86_400_000, Bounds(0), MEDIUM, CLUSTER_WIDE,
            ACTS, "How long the mark of a deletion stays in a compacted topic."),
    Setting("file.delete.delay.ms", LONG, 60_000, Bounds(0), MEDIUM, CLUSTER_WIDE,
            ACTS, "How long a deleted segment stays as a file."),
    Setting("flush.messages", LONG, LONG_MAX, Bounds(1), MEDIUM, CLUSTER_WIDE,
            ACTS, "How many records may be written before the log is flushed to disk."),
    Setting("flush.ms", LONG, LONG_MAX, Bounds(0), MEDIUM, CLUSTER_WIDE,
            ACTS, "How long a record may stay unflushed."),
    Setting("follower.replication.throttled.replicas", LIST, (), _REPLICAS, MEDIUM, CLUSTER_WIDE,
            ACTS, "Replicas whose fetching is throttled."),
    Setting("leader.replication.throttled.replicas", LIST, (), _REPLICAS, MEDIUM, CLUSTER_WIDE,
            ACTS, "Replicas whose sending is throttled."),
    Setting("index.interval.bytes", INT, 4096, Bounds(0), MEDIUM, CLUSTER_WIDE,
            ACTS, "How many bytes of log lie between two index entries."),
    Setting("internal.segment.bytes", INT, None, Bounds(1), MEDIUM, CLUSTER_WIDE,
            INERT, "A segment size below all bounds, for tests.", internal=True),
    Setting("local.retention.bytes", LONG, -2, Bounds(-2), MEDIUM, CLUSTER_WIDE,
            INERT, "Local share of a tiered log; tiered storage is not supported."),
    Setting("local.retention.ms", LONG, -2, Bounds(-2), MEDIUM, CLUSTER_WIDE,
            INERT, "Local share of a tiered log; tiered storage is not supported."),
    Setting("max.compaction.lag.ms", LONG, LONG_MAX, Bounds(1), MEDIUM, CLUSTER_WIDE,
            ACTS, "How long a record may stay uncompacted at most."),
    Setting("max.message.bytes", INT, 1_048_588, Bounds(0), MEDIUM, CLUSTER_WIDE,
            ACTS, "The largest batch of records taken."),
    Setting("message.downconversion.enable", BOOLEAN, True, None, LOW, CLUSTER_WIDE,
            ACTS, "Whether old consumers get records converted to the format they read."),
    Setting("message.format.version", STRING, None, None, LOW, CLUSTER_WIDE, INERT,
            "The record format of Kafka before 3.0; format 2 is always written.", internal=True),
    Setting("message.timestamp.after.max.ms", LONG, 3_600_000, Bounds(0), MEDIUM, CLUSTER_WIDE,
            ACTS, "How far a producer's time may lie in the future."),
    Setting("message.timestamp.before.max.ms", LONG, LONG_MAX, Bounds(0), MEDIUM, CLUSTER_WIDE,
            ACTS, "How far a producer's time may lie in the past."),
    Setting("message.timestamp.difference.max.ms", LONG, None, Bounds(0), LOW, CLUSTER_WIDE,
            ACTS, "How far a producer's time may lie off, where before and after are not set.",
            internal=True),
    Setting("message.timestamp.type", STRING, "CreateTime", OneOf("CreateTime", "LogAppendTime"),
            MEDIUM, CLUSTER_WIDE,
            ACTS, "Whether a record's time is the producer's or that of the append."),
    Setting("min.cleanable.dirty.ratio", DOUBLE, 0.5, Bounds(0, 1), MEDIUM, CLUSTER_WIDE,
            ACTS, "How large the uncompacted part of a log must be to start."),
    Setting("min.compaction.lag.ms", LONG, 0, Bounds(0), MEDIUM, CLUSTER_WIDE,
            ACTS, "How long a record stays uncompacted at least."),
    Setting("min.insync.replicas", INT, 1, Bounds(1), MEDIUM, CLUSTER_WIDE,
            ACTS, "How many replicas must have a record before acks=all is answered."),
    Setting("penstock.key.validation", STRING, "none", OneOf("none", "decode"), MEDIUM,
            CLUSTER_WIDE, ACTS, "With decode, keys must decode by the schema that they name."),
    Setting("penstock.value.validation", STRING, "none", OneOf("none", "decode"), MEDIUM,
            CLUSTER_WIDE, ACTS, "With decode, values must decode by the schema that they name."),
    Setting("penstock.validation.action", STRING, "reject", OneOf("reject", "dlq", "warn"),
            MEDIUM, CLUSTER_WIDE,
            ACTS, "Whether a batch with records that fail is refused, appended without those, "
            "which become dead letters, or appended with a warning."),
    Setting("penstock.validation.dlq.topic", STRING, None, _TOPIC_NAME, MEDIUM, CLUSTER_WIDE,
            ACTS, "Where dead letters go; not set: the topic's name with .dlq behind it."),
    Setting("penstock.validation.when.away", STRING, "reject", OneOf("reject", "accept"), MEDIUM,
            CLUSTER_WIDE, ACTS, "What becomes of records while the schema registry does not "
            "answer."),
    Setting("preallocate", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE,
            ACTS, "Whether a segment takes its full size on disk at once."),
    Setting("remote.log.copy.disable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE,
            INERT, "Whether tiering stops; tiered storage is not supported."),
    Setting("remote.log.delete.on.disable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE,
            INERT, "Whether tiered data goes with tiering; tiered storage is not supported."),
    Setting("remote.storage.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE,
            INERT, "Whether the log is tiered; tiered storage is not supported."),
    Setting("retention.bytes", LONG, -1, None, MEDIUM, CLUSTER_WIDE,
            ACTS, "How large a partition may grow before its oldest segments go; -1: no limit."),
    Setting("retention.ms", LONG, 604_800_000, Bounds(-1), MEDIUM, CLUSTER_WIDE,
            ACTS, "How long records are kept; -1 keeps them for ever."),
    Setting("segment.bytes", INT, 1 << 30, Bounds(1 << 20), MEDIUM, CLUSTER_WIDE,
            ACTS, "The size at which a segment is full and the next begins."),
    Setting("segment.index.bytes", INT, 10 << 20, Bounds(4), MEDIUM, CLUSTER_WIDE,
            ACTS, "The size of the index of one segment."),
    Setting("segment.jitter.ms", LONG, 0, Bounds(0), MEDIUM, CLUSTER_WIDE,
            ACTS, "The largest random part taken off segment.ms."),
    Setting("segment.ms", LONG, 604_800_000, Bounds(1), MEDIUM, CLUSTER_WIDE,
            ACTS, "The age at which a segment is closed though not full."),
    Setting("unclean.leader.election.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE,
            ACTS, "Whether a replica that may lack records can become leader."),
))
# fmt: on

# What makes a topic check the schemas of its records.
VALIDATIONS: Final = (
    "confluent.key.schema.validation",
    "confluent.value.schema.validation",
    "penstock.key.validation",
    "penstock.value.validation",
)

# The broker's setting that stands in where a topic says nothing.
BROKER_NAMES: Final[Mapping[str, str]] = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.downconversion.enable": "log.message.downconversion.enable",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}

# A name of the tutorials that Apache Kafka itself does not take for a topic.
ALIASES: Final[Mapping[str, str]] = {"log.cleanup.policy": "cleanup.policy"}

_ATTRIBUTES: Final = {name: attribute_name(broker) for name, broker in BROKER_NAMES.items()}
_OWN_DEFAULTS: Final = {
    name: setting.default for name, setting in TOPIC_SETTINGS.items() if name not in BROKER_NAMES
}
_TIMESTAMP_BOUNDS: Final = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")


def canonical_name(name: str) -> str:
    """The name a topic's setting is stored and described under."""
    return ALIASES.get(name, name)


def canonical_overrides(overrides: Mapping[str, str]) -> dict[str, str]:
    """Overrides as they are stored: one name for each setting."""
    return {canonical_name(name): text for name, text in overrides.items()}


def parse_topic_config(
    overrides: Mapping[str, str | None], config: BrokerConfig
) -> dict[str, Value]:
    """The typed values of what a topic states, or a ConfigError that can go to a client.

    All that holds together with the broker's settings is checked too.
    """
    nulls = [name for name, text in overrides.items() if text is None]
    if nulls:
        raise ConfigError(f"Null value not supported for topic configs: {', '.join(nulls)}")
    given = {canonical_name(name): text for name, text in overrides.items() if text is not None}
    for name in given:  # Kafka looks at all names before it looks at a value.
        _setting(name)
    stated = {name: _setting(name).parse_for_client(text) for name, text in given.items()}
    check_together(_merged(stated, config))
    _check_registry(stated, config)
    return stated


def _check_registry(stated: Mapping[str, Value], config: BrokerConfig) -> None:
    """Without a registry no record could ever pass."""
    asking = [
        name
        for name in VALIDATIONS
        if stated.get(name, TOPIC_SETTINGS[name].default) != TOPIC_SETTINGS[name].default
    ]
    if asking and not config.confluent_schema_registry_url:
        raise ConfigError(
            f"{asking[0]} needs a schema registry: set confluent.schema.registry.url in the "
            "broker's settings"
        )


def effective_topic_config(overrides: Mapping[str, str], config: BrokerConfig) -> dict[str, Value]:
    """Every setting of a topic as it holds, by its name.

    A stored name or value that this version does not take is left out: what goes in is checked by
    `parse_topic_config`, so it comes from a broker of another version, and a topic must still open.
    A segment size from before the lower bound was raised is kept, or its retention would change.
    """
    usable: dict[str, Value] = {}
    for name, text in canonical_overrides(overrides).items():
        with suppress(ConfigError):
            usable[name] = (
                TOPIC_SETTINGS["internal.segment.bytes"].parse(text)
                if name == "segment.bytes"
                else _setting(name).parse_for_client(text)
            )
    return _merged(usable, config)


def log_settings(overrides: Mapping[str, str], config: BrokerConfig) -> dict[str, Value]:
    """What storage's LogConfig.from_settings takes: the topic's settings, and the broker's that
    every log obeys."""
    return {
        **effective_topic_config(overrides, config),
        "producer.id.expiration.ms": config.producer_id_expiration_ms,
    }


def check_together(values: Mapping[str, Value]) -> None:
    """Refuse settings of a topic that contradict each other or what this broker has."""
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({least})"
            f" > max.compaction.lag.ms ({most})"
        )
    if values["remote.storage.enable"]:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker."
            " Topic cannot be configured with remote log storage."
        )


def _setting(name: str) -> Setting:
    setting = TOPIC_SETTINGS.get(name)
    if setting is None:
        raise ConfigError(f"Unknown topic config name: {name}")
    return setting


def _merged(stated: Mapping[str, Value], config: BrokerConfig) -> dict[str, Value]:
    merged: dict[str, Value] = {
        name: getattr(config, attribute) for name, attribute in _ATTRIBUTES.items()
    }
    merged.update(_OWN_DEFAULTS)
    merged.update(stated)
    difference_ms = stated.get("message.timestamp.difference.max.ms")
    if difference_ms is not None:
        merged.update((name, difference_ms) for name in _TIMESTAMP_BOUNDS if name not in stated)
    if stated.get("internal.segment.bytes") is not None:
        merged["segment.bytes"] = stated["internal.segment.bytes"]
    return merged
