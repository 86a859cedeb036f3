"""The settings of a capture of DynamoDB: AWS's for the server, Debezium's words for the records."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.connect.connectors.aws import CREDENTIALS_CONFIG, half_credentials
from penstock.connect.connectors.changes.decimals import DecimalMode
from penstock.connect.connectors.changes.settings import (
    FailureMode,
    SnapshotMode,
    number,
    operations_judge,
    prefix_judge,
    required,
    text_entry,
    word,
)
from penstock.connect.connectors.checks import with_errors
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import (
    AllOf,
    DistinctItems,
    Judged,
    OneOfWords,
    WithinRange,
)

TABLES = "dynamodb.tables"
_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_URL = re.compile(r"https?://[^/\s]+/?")
_TOPIC_LETTERS_MAX = 249  # Kafka's own bound.
_SNAPSHOTS = (SnapshotMode.INITIAL, SnapshotMode.INITIAL_ONLY, SnapshotMode.NEVER)


class StreamStart(StrEnum):
    """`stream.initial.position`: where a stream begins that no snapshot comes before."""

    TRIM_HORIZON = "TRIM_HORIZON"
    LATEST = "LATEST"


class GapMode(StrEnum):
    """`stream.gap.handling.mode`: what to do about changes that AWS has removed unread."""

    FAIL = "fail"
    SNAPSHOT = "snapshot"
    CONTINUE = "continue"


class ItemForm(StrEnum):
    """`item.format`: an item as a struct of its attributes, or as one JSON text."""

    STRUCT = "struct"
    JSON = "json"


def _url_judge(value: Any) -> str | None:
    if not value or _URL.fullmatch(value):
        return None
    return "Must be http:// or https:// with a host"


def _tables_judge(value: Any) -> str | None:
    wrong = [one for one in value or [] if not _TABLE.fullmatch(one)]
    if not wrong:
        return None
    return f"{wrong[0]!r:.80} is no table's name: 3 to 255 letters, digits, '_', '-' and '.'"


CONFIG = CREDENTIALS_CONFIG + ConfigDef(
    text_entry("dynamodb.region", "us-west-2", "The region of the tables."),
    text_entry("dynamodb.service.endpoint", "",
               "The address of what speaks DynamoDB's protocol; AWS itself if it is not given.",
               validator=Judged(_url_judge, "a URL")),
    ConfigEntry(TABLES, ConfigType.LIST, NO_DEFAULT, Importance.HIGH,
                "The names of the tables, shared out among the tasks.",
                validator=AllOf((DistinctItems(), Judged(_tables_judge, "names of tables")))),
    required("topic.prefix", "The first part of every topic's name.",
             validator=Judged(prefix_judge, "a topic's name")),
    text_entry("topic.delimiter", ".", "What stands between the parts of a topic's name.",
               validator=Judged(prefix_judge, "a part of a topic's name")),
    text_entry("snapshot.mode", SnapshotMode.INITIAL.value,
               "initial: items first, then changes. initial_only: items. never: changes.",
               validator=OneOfWords(_SNAPSHOTS, any_case=True)),
    number("snapshot.fetch.size", 500, "Items of a snapshot that are fetched at a time.", 1),
    text_entry("stream.initial.position", StreamStart.TRIM_HORIZON.value,
               "Where a stream begins without a snapshot: TRIM_HORIZON, with the oldest change"
               " that AWS has; LATEST, with the next one.",
               validator=OneOfWords(tuple(StreamStart), any_case=True)),
    word("stream.gap.handling.mode", GapMode.FAIL,
         "What to do when AWS has removed changes before they were read: fail; snapshot, which"
         " reads the table anew; continue, with the oldest change there is."),
    ConfigEntry("stream.records.max", ConfigType.INT, 1000, Importance.LOW,
                "Changes of a shard that are fetched at a time.", validator=WithinRange(1, 1000)),
    word("item.format", ItemForm.STRUCT, "An item as a struct of its attributes, or as JSON."),
    word("decimal.handling.mode", DecimalMode.STRING, "How numbers travel."),
    ConfigEntry("tombstones.on.delete", ConfigType.BOOLEAN, True, Importance.MEDIUM,
                "Whether a record without a value follows that of a delete, for compaction."),
    ConfigEntry("skipped.operations", ConfigType.LIST, ["none"], Importance.LOW,
                "Operations that are left out: c, u, d, or none.",
                validator=Judged(operations_judge, "c, u, d, none")),
    word("event.processing.failure.handling.mode", FailureMode.FAIL,
         "What becomes of an item that cannot be made a record."),
    number("heartbeat.interval.ms", 0, "How often a heartbeat keeps the position; 0: never.", 0),
    text_entry("topic.heartbeat.prefix", "__debezium-heartbeat",
               "The heartbeat topic's first part.", validator=Judged(prefix_judge, "a part")),
    number("max.batch.size", 2048, "Records that one poll brings, about.", 1),
    number("poll.interval.ms", 500, "How soon a shard without news is asked again.", 1),
    number("errors.max.retries", 10, "Tries to reach a server that is away; -1: for ever.", -1),
    number("retriable.restart.connector.wait.ms", 1000, "How long to wait between tries.", 0),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoSettings:
    """A configuration that is valid, as the task uses it."""

    given: Mapping[str, Any]
    tables: tuple[str, ...]
    snapshot: SnapshotMode
    start: StreamStart
    gaps: GapMode
    form: ItemForm
    decimals: DecimalMode
    failures: FailureMode
    skipped: frozenset[str]

    @classmethod
    def of(cls, config: Mapping[str, str]) -> "DynamoSettings":
        """ConfigError for a configuration that is not valid."""
        given = CONFIG.parse(config)
        return cls(
            given=given,
            tables=tuple(given[TABLES]),
            snapshot=SnapshotMode(given["snapshot.mode"].lower()),
            start=StreamStart(given["stream.initial.position"].upper()),
            gaps=GapMode(given["stream.gap.handling.mode"].lower()),
            form=ItemForm(given["item.format"].lower()),
            decimals=DecimalMode(given["decimal.handling.mode"].lower()),
            failures=FailureMode(given["event.processing.failure.handling.mode"].lower()),
            skipped=frozenset(given["skipped.operations"]),
        )

    @property
    def prefix(self) -> str:
        """The first part of topics' names."""
        return str(self.given["topic.prefix"])

    def topic(self, table: str) -> str:
        """The topic of a table."""
        return str(self.given["topic.delimiter"]).join((self.prefix, table))

    @property
    def heartbeat_topic(self) -> str:
        """The topic of heartbeats."""
        parts = (self.given["topic.heartbeat.prefix"], self.prefix)
        return str(self.given["topic.delimiter"]).join(parts)


def validated(config: Mapping[str, str]) -> CheckedConfig:
    """Every setting with its errors, also those of settings that contradict each other."""
    checked = CONFIG.validate(config)
    values = {one.entry.name: one.value for one in checked.values}
    return with_errors(checked, _contradictions(values))


def _contradictions(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    half = half_credentials(values)
    if half is not None:
        yield "aws.access.key.id", half
    parts = (values["topic.prefix"], values["topic.delimiter"])
    for table in values[TABLES] or ():
        if len("".join((*(part or "" for part in parts), table))) > _TOPIC_LETTERS_MAX:
            yield TABLES, f"The topic of {table:.80} would be longer than {_TOPIC_LETTERS_MAX}."
    is_gap_snapshot = (values["stream.gap.handling.mode"] or "").lower() == GapMode.SNAPSHOT
    if is_gap_snapshot and (values["snapshot.mode"] or "").lower() == SnapshotMode.NEVER:
        yield "stream.gap.handling.mode", "It cannot be snapshot with snapshot.mode=never."
