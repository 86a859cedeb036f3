"""The settings of PostgreSQL's change data capture, by Debezium's names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.connect.connectors.changes.decimals import DecimalMode
from penstock.connect.connectors.changes.settings import (
    BinaryMode,
    ChangesSettings,
    FailureMode,
    SettingsRules,
    SnapshotMode,
    TimeMode,
    number,
    operations_judge,
    patterns,
    prefix_judge,
    required,
    shared_settings,
    text_entry,
    word,
)
from penstock.connect.connectors.postgres.column_types import IntervalMode, ValueModes
from penstock.connect.plugins.config_def import (
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import Judged, NonEmptyText, OneOfWords

_SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}")
# Settings of Debezium's that would change what is written, and that nothing here obeys.
_REFUSED = (
    "converters",
    "hstore.handling.mode",
    "incremental.snapshot.chunk.size",
    "message.key.columns",
    "money.fraction.digits",
    "post.processors",
    "provide.transaction.metadata",
    "publish.via.partition.root",
    "replica.identity.autoset.values",
    "signal.data.collection",
    "signal.enabled.channels",
    "slot.drop.on.stop",
    "slot.stream.params",
    "snapshot.select.statement.overrides",
)


class PublicationMode(StrEnum):
    """What becomes of a publication that is not there."""

    ALL_TABLES = "all_tables"
    DISABLED = "disabled"
    FILTERED = "filtered"
    NO_TABLES = "no_tables"


def _slot_judge(value: Any) -> str | None:
    if value is None or _SLOT_NAME.fullmatch(value):
        return None
    return "A slot's name has lower-case letters, digits and underscores, at most 63."


CONFIG = ConfigDef(
    required("database.hostname", "The server's name or address.", validator=NonEmptyText()),
    number("database.port", 5432, "The server's port.", 1),
    required("database.user", "Who logs in; needs the attribute REPLICATION."),
    ConfigEntry("database.password", ConfigType.PASSWORD, None, Importance.HIGH, "The password."),
    required("database.dbname", "The database whose tables are captured."),
    text_entry(
        "database.sslmode", "prefer", "Whether the connection is encrypted, in libpq's words.",
        validator=OneOfWords(("disable", "allow", "prefer", "require", "verify-ca", "verify-full")),
    ),
    text_entry("database.sslcert", None, "The file of the client's certificate."),
    text_entry("database.sslkey", None, "The file of the client's private key."),
    text_entry("database.sslrootcert", None, "The file of the authorities that are trusted."),
    required(
        "topic.prefix", "The first part of every topic's name.",
        validator=Judged(prefix_judge, "a topic's name"),
    ),
    patterns("schema.include.list", "Patterns of schemas to capture; none: all."),
    patterns("schema.exclude.list", "Patterns of schemas not to capture."),
    patterns("table.include.list", "Patterns of schema.table to capture; none: all."),
    patterns("table.exclude.list", "Patterns of schema.table not to capture."),
    patterns("column.include.list", "Patterns of schema.table.column to send; none: all."),
    patterns("column.exclude.list", "Patterns of schema.table.column not to send."),
    text_entry(
        "plugin.name", "pgoutput", "The plug-in of the server that decodes its log.",
        validator=OneOfWords(("pgoutput",)),
    ),
    text_entry(
        "slot.name", "debezium", "The replication slot; it is made if it is not there.",
        validator=Judged(_slot_judge, "a slot's name"),
    ),
    number("slot.max.retries", 6, "How often a slot that another holds is asked for again.", 0),
    number("slot.retry.delay.ms", 10_000, "How long to wait between such tries.", 0),
    text_entry(
        "publication.name", "dbz_publication", "The publication that changes come through.",
        validator=NonEmptyText(),
    ),
    word("publication.autocreate.mode", PublicationMode.ALL_TABLES,
          "What is made where the publication is not there."),
    word("snapshot.mode", SnapshotMode.INITIAL, "Whether tables are read before their changes."),
    number("snapshot.fetch.size", 10_240, "Rows of a snapshot that are fetched at a time.", 1),
    ConfigEntry("tombstones.on.delete", ConfigType.BOOLEAN, True, Importance.MEDIUM,
                "Whether a record without a value follows that of a delete, for compaction."),
    ConfigEntry("skipped.operations", ConfigType.LIST, ["t"], Importance.LOW,
                "Operations that are left out: c, u, d, t (truncate), or none.",
                validator=Judged(operations_judge, "c, u, d, t, none")),
    number("heartbeat.interval.ms", 0, "How often a heartbeat moves the slot on; 0: never.", 0),
    text_entry("topic.heartbeat.prefix", "__debezium-heartbeat",
               "The heartbeat topic's first part."),
    text_entry("topic.delimiter", ".", "What stands between the parts of a topic's name.",
          validator=Judged(prefix_judge, "a part of a topic's name")),
    word("decimal.handling.mode", DecimalMode.PRECISE, "How decimals travel."),
    word("time.precision.mode", TimeMode.ADAPTIVE, "How dates and times travel."),
    word("binary.handling.mode", BinaryMode.BYTES, "How binary columns travel."),
    word("interval.handling.mode", IntervalMode.NUMERIC, "How intervals travel."),
    text_entry("unavailable.value.placeholder", "__debezium_unavailable_value",
          "What stands for a large value that the server did not send."),
    word("event.processing.failure.handling.mode", FailureMode.FAIL,
          "What becomes of a row that cannot be made a record."),
    number("max.batch.size", 2048, "Records that one poll brings, at most.", 1),
    number("poll.interval.ms", 500, "How long a poll waits for something new.", 1),
    number("errors.max.retries", 10, "Tries to reach a server that is away; -1: for ever.", -1),
    number("retriable.restart.connector.wait.ms", 1000, "How long to wait between tries.", 0),
)  # fmt: skip


RULES = SettingsRules(config=CONFIG, level="schema", refused=_REFUSED, told_at="plugin.name")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings(ChangesSettings):
    """A configuration that is valid, as the task uses it."""

    modes: ValueModes
    publication_mode: PublicationMode

    @classmethod
    def of(cls, config: Mapping[str, str]) -> "CaptureSettings":
        """ConfigError for one that is not valid."""
        found = CONFIG.parse(config)
        return cls(
            modes=ValueModes(
                decimals=DecimalMode(found["decimal.handling.mode"].lower()),
                times=TimeMode(found["time.precision.mode"].lower()),
                binary=BinaryMode(found["binary.handling.mode"].lower()),
                intervals=IntervalMode(found["interval.handling.mode"].lower()),
            ),
            publication_mode=PublicationMode(found["publication.autocreate.mode"].lower()),
            **shared_settings(found, RULES.level),
        )

    @property
    def slot(self) -> str:
        """The replication slot."""
        return str(self.given["slot.name"])

    @property
    def publication(self) -> str:
        """The publication."""
        return str(self.given["publication.name"])

    def connection(self) -> dict[str, Any]:
        """What libpq is given; dates and numbers then come as this package reads them."""
        password = self.given["database.password"]
        names = ("sslmode", "sslcert", "sslkey", "sslrootcert")
        return {
            "host": self.given["database.hostname"],
            "port": self.given["database.port"],
            "user": self.given["database.user"],
            "password": None if password is None else str(password),
            "dbname": self.given["database.dbname"],
            "connect_timeout": 10,
            "client_encoding": "UTF8",
            "application_name": f"penstock {self.prefix}",
            "options": "-c datestyle=ISO -c timezone=UTC -c intervalstyle=iso_8601"
            " -c extra_float_digits=3 -c bytea_output=hex -c lc_monetary=C",
            **{name: value for name in names if (value := self.given[f"database.{name}"])},
        }
