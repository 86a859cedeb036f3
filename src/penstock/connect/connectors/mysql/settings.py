"""The settings of a capture of MariaDB or MySQL, by Debezium's names."""

import ssl
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
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import AtLeast, Judged, NonEmptyText, OneOfWords

# Settings of Debezium's that would change what is written, and that nothing here obeys.
_REFUSED = (
    "converters",
    "gtid.source.excludes",
    "gtid.source.includes",
    "include.query",
    "include.schema.changes",
    "incremental.snapshot.chunk.size",
    "message.key.columns",
    "post.processors",
    "provide.transaction.metadata",
    "signal.data.collection",
    "signal.enabled.channels",
    "snapshot.select.statement.overrides",
)
_TLS = ("disabled", "required", "verify_ca", "verify_identity")


class UnsignedMode(StrEnum):
    """`bigint.unsigned.handling.mode`."""

    LONG = "long"
    PRECISE = "precise"


CONFIG = ConfigDef(
    required("database.hostname", "The server's name or address.", validator=NonEmptyText()),
    number("database.port", 3306, "The server's port.", 1),
    required("database.user", "Who logs in; needs REPLICATION SLAVE, REPLICATION CLIENT, SELECT."),
    ConfigEntry("database.password", ConfigType.PASSWORD, None, Importance.HIGH, "The password."),
    ConfigEntry(
        "database.server.id", ConfigType.LONG, NO_DEFAULT, Importance.HIGH,
        "A number that no other replica of this server has.", validator=AtLeast(1),
    ),
    text_entry("database.ssl.mode", "disabled", "Whether the connection is encrypted.",
               validator=OneOfWords(_TLS, any_case=True)),
    text_entry("database.ssl.ca", None, "The file of the authorities that are trusted."),
    required("topic.prefix", "The first part of every topic's name.",
             validator=Judged(prefix_judge, "a topic's name")),
    patterns("database.include.list", "Patterns of databases to capture; none: all."),
    patterns("database.exclude.list", "Patterns of databases not to capture."),
    patterns("table.include.list", "Patterns of database.table to capture; none: all."),
    patterns("table.exclude.list", "Patterns of database.table not to capture."),
    patterns("column.include.list", "Patterns of database.table.column to send; none: all."),
    patterns("column.exclude.list", "Patterns of database.table.column not to send."),
    word("snapshot.mode", SnapshotMode.INITIAL, "Whether tables are read before their changes."),
    number("snapshot.fetch.size", 10_240, "Rows of a snapshot that are fetched at a time.", 1),
    ConfigEntry("tombstones.on.delete", ConfigType.BOOLEAN, True, Importance.MEDIUM,
                "Whether a record without a value follows that of a delete, for compaction."),
    ConfigEntry("skipped.operations", ConfigType.LIST, ["t"], Importance.LOW,
                "Operations that are left out: c, u, d, t (truncate), or none.",
                validator=Judged(operations_judge, "c, u, d, t, none")),
    number("heartbeat.interval.ms", 0, "How often a heartbeat keeps the position; 0: never.", 0),
    text_entry("topic.heartbeat.prefix", "__debezium-heartbeat",
               "The heartbeat topic's first part."),
    text_entry("topic.delimiter", ".", "What stands between the parts of a topic's name.",
               validator=Judged(prefix_judge, "a part of a topic's name")),
    word("decimal.handling.mode", DecimalMode.PRECISE, "How decimals travel."),
    word("bigint.unsigned.handling.mode", UnsignedMode.LONG, "How BIGINT UNSIGNED travels."),
    word("time.precision.mode", TimeMode.MICROSECONDS, "How dates and times travel."),
    word("binary.handling.mode", BinaryMode.BYTES, "How binary columns travel."),
    word("event.processing.failure.handling.mode", FailureMode.FAIL,
         "What becomes of a row that cannot be made a record."),
    number("max.batch.size", 2048, "Records that one poll brings, about.", 1),
    number("poll.interval.ms", 500, "How long a poll waits for something new.", 1),
    number("connect.timeout.ms", 30_000, "How long a connection may take.", 1),
    number("errors.max.retries", 10, "Tries to reach a server that is away; -1: for ever.", -1),
    number("retriable.restart.connector.wait.ms", 1000, "How long to wait between tries.", 0),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MyValueModes:
    """How values travel, where Debezium gives a choice."""

    decimals: DecimalMode = DecimalMode.PRECISE
    unsigned: UnsignedMode = UnsignedMode.LONG
    times: TimeMode = TimeMode.MICROSECONDS
    binary: BinaryMode = BinaryMode.BYTES


RULES = SettingsRules(
    config=CONFIG, level="database", refused=_REFUSED, told_at="database.hostname"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogSettings(ChangesSettings):
    """A configuration that is valid, as the task uses it."""

    modes: MyValueModes
    product: str  # mariadb or mysql, by the name that the connector was given.

    @classmethod
    def of(cls, config: Mapping[str, str], product: str) -> "BinlogSettings":
        """ConfigError for one that is not valid."""
        found = CONFIG.parse(config)
        return cls(
            modes=MyValueModes(
                decimals=DecimalMode(found["decimal.handling.mode"].lower()),
                unsigned=UnsignedMode(found["bigint.unsigned.handling.mode"].lower()),
                times=TimeMode(found["time.precision.mode"].lower()),
                binary=BinaryMode(found["binary.handling.mode"].lower()),
            ),
            product=product,
            **shared_settings(found, RULES.level),
        )

    def connection(self) -> dict[str, Any]:
        """What PyMySQL is given."""
        password = self.given["database.password"]
        return {
            "host": self.given["database.hostname"],
            "port": self.given["database.port"],
            "user": self.given["database.user"],
            "password": "" if password is None else str(password),
            "charset": "utf8mb4",
            "connect_timeout": max(1, self.given["connect.timeout.ms"] // 1000),
            **self._tls(),
        }

    def _tls(self) -> dict[str, Any]:
        mode = self.given["database.ssl.mode"].lower()
        if mode == "disabled":
            return {"ssl_disabled": True}
        context = ssl.create_default_context(cafile=self.given["database.ssl.ca"] or None)
        context.check_hostname = mode == "verify_identity"
        if mode == "required":
            context.verify_mode = ssl.CERT_NONE
        return {"ssl": context}
