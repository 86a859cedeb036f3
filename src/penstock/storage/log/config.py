"""The settings of one topic as the log engine reads them: Kafka's names in Python's types.

Where a value comes from, what is allowed and what the broker's own default is, is decided in
`config/topic.py`; here are only Apache Kafka's defaults, for tools and tests.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Final, NamedTuple

LONG_MAX: Final = 2**63 - 1
DAY_MS: Final = 24 * 60 * 60 * 1000

CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
BY_TOPIC_NAME: Final = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
_DECODE: Final = "decode"


class SchemaCheck(NamedTuple):
    """What a topic asks of its keys, or of its values."""

    is_key: bool
    strategy: str  # Which subject their schemas belong to.
    decodes: bool  # They must also decode by the schema that they name.


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """One value for all of a topic's partitions; a change makes a new one."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    preallocate: bool = False
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    file_delete_delay_ms: int = 60_000
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_cleanable_dirty_ratio: float = 0.5
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = CREATE_TIME
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = 60 * 60 * 1000
    message_downconversion_enable: bool = True
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    confluent_key_schema_validation: bool = False
    confluent_key_subject_name_strategy: str = BY_TOPIC_NAME
    confluent_value_schema_validation: bool = False
    confluent_value_subject_name_strategy: str = BY_TOPIC_NAME
    penstock_key_validation: str = "none"
    penstock_value_validation: str = "none"
    penstock_validation_action: str = "reject"
    penstock_validation_dlq_topic: str | None = None  # None: the topic's name and .dlq.
    penstock_validation_when_away: str = "reject"
    producer_id_expiration_ms: int = DAY_MS  # The broker's setting; topics cannot change it.
    roll_ms: int = field(init=False)  # How far in time a segment goes.
    # Whether a batch whose newest timestamp is not too new needs no look at its records.
    takes_any_past: bool = field(init=False)
    schema_checks: tuple[SchemaCheck, ...] = field(init=False)  # Empty: schemas do not matter.

    def __post_init__(self) -> None:
        """The active segment is never compacted, so it must end within the compaction lag."""
        is_bounded = self.is_compacted and self.max_compaction_lag_ms > 0
        roll_ms = (
            min(self.segment_ms, self.max_compaction_lag_ms) if is_bounded else self.segment_ms
        )
        object.__setattr__(self, "roll_ms", roll_ms)
        is_unbounded = self.message_timestamp_before_max_ms == LONG_MAX
        takes_any_past = is_unbounded and not self.is_compacted and not self.is_append_time
        object.__setattr__(self, "takes_any_past", takes_any_past)
        object.__setattr__(self, "schema_checks", tuple(self._schema_checks()))

    def _schema_checks(self) -> Iterator[SchemaCheck]:
        """Decoding begins with the id, so who asks for the one gets the other."""
        decodes = self.penstock_key_validation == _DECODE
        if decodes or self.confluent_key_schema_validation:
            yield SchemaCheck(True, self.confluent_key_subject_name_strategy, decodes)
        decodes = self.penstock_value_validation == _DECODE
        if decodes or self.confluent_value_schema_validation:
            yield SchemaCheck(False, self.confluent_value_subject_name_strategy, decodes)

    @property
    def is_append_time(self) -> bool:
        return self.message_timestamp_type == LOG_APPEND_TIME

    @property
    def is_deleted_by_age_or_size(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> "LogConfig":
        """From typed values under Kafka's dotted names; names the engine does not use are left."""
        known: dict[str, object] = {}
        for name, value in settings.items():
            field = name.replace(".", "_")
            if field not in _FIELDS or value is None:
                continue
            known[field] = _collected(field, value)
        return cls(**known)  # type: ignore[arg-type]


_FIELDS: Final = frozenset(field.name for field in fields(LogConfig) if field.init)


def _collected(field: str, value: object) -> object:
    """Lists come as any iterable of words, or as the text with commas that Kafka shows."""
    if field != "cleanup_policy" and not field.endswith("_throttled_replicas"):
        return value
    words = value.split(",") if isinstance(value, str) else value
    assert isinstance(words, Iterable)
    stripped = tuple(word.strip() for word in words if word.strip())
    return frozenset(stripped) if field == "cleanup_policy" else stripped
