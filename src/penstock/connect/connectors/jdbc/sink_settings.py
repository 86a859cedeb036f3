"""The settings of the JDBC sink, by Confluent's names."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

from penstock.connect.connectors.checks import unserved_settings, with_errors
from penstock.connect.connectors.jdbc.source_settings import CONNECTION, connection_errors
from penstock.connect.plugins.config_def import (
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import AtLeast, NonEmptyText, OneOfWords


class InsertMode(StrEnum):
    """What a record does to the table."""

    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"


class KeyMode(StrEnum):
    """Where the primary key comes from."""

    NONE = "none"
    KAFKA = "kafka"
    RECORD_KEY = "record_key"
    RECORD_VALUE = "record_value"


CONFIG = ConfigDef(
    *CONNECTION,
    ConfigEntry("insert.mode", ConfigType.STRING, "insert", Importance.HIGH,
                "What a record does to the table.", validator=OneOfWords(tuple(InsertMode))),
    ConfigEntry("pk.mode", ConfigType.STRING, "none", Importance.HIGH,
                "Where the primary key comes from.", validator=OneOfWords(tuple(KeyMode))),
    ConfigEntry("pk.fields", ConfigType.LIST, [], Importance.MEDIUM,
                "The names of the key's columns; none: all fields of the key."),
    ConfigEntry("fields.whitelist", ConfigType.LIST, [], Importance.MEDIUM,
                "Fields of the value that are written; none: all."),
    ConfigEntry("table.name.format", ConfigType.STRING, "${topic}", Importance.MEDIUM,
                "The table's name; ${topic} stands for the topic.", validator=NonEmptyText()),
    ConfigEntry("auto.create", ConfigType.BOOLEAN, False, Importance.MEDIUM,
                "Whether a table that is not there is made."),
    ConfigEntry("auto.evolve", ConfigType.BOOLEAN, False, Importance.MEDIUM,
                "Whether a table gets columns that it lacks."),
    ConfigEntry("delete.enabled", ConfigType.BOOLEAN, False, Importance.MEDIUM,
                "Whether a record without a value deletes the row of its key."),
    ConfigEntry("batch.size", ConfigType.INT, 3000, Importance.MEDIUM,
                "Records in one transaction, at most.", validator=AtLeast(1)),
    ConfigEntry("max.retries", ConfigType.INT, 10, Importance.MEDIUM,
                "How often a transaction is tried again.", validator=AtLeast(0)),
    ConfigEntry("retry.backoff.ms", ConfigType.INT, 3000, Importance.MEDIUM,
                "How long to wait before that.", validator=AtLeast(0)),
    ConfigEntry("offsets.table", ConfigType.STRING, "connect_sink_offsets", Importance.MEDIUM,
                "Keeps offsets beside the rows, in one transaction: exactly once. Empty: not."),
)  # fmt: skip

# Settings of Confluent's that nothing here obeys, with the value that changes nothing.
UNSERVED = {
    "db.timezone": "UTC",
    "dialect.name": "",
    "mssql.use.merge.holdlock": "true",
    "quote.sql.identifiers": "ALWAYS",
    "replace.null.with.default": "true",
    "table.types": "TABLE",
}


def validated(config: Mapping[str, str]) -> CheckedConfig:
    """Every setting with its errors, also of settings together."""
    return with_errors(CONFIG.validate(config), _together(config))


def _together(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from connection_errors(config)
    yield from (("connection.url", one) for one in unserved_settings(config, UNSERVED))
    key_mode = config.get("pk.mode", "none")
    if config.get("insert.mode") in ("upsert", "update") and key_mode == "none":
        yield "pk.mode", f"insert.mode={config['insert.mode']} needs a primary key."
    if config.get("delete.enabled", "").lower() == "true" and key_mode != "record_key":
        yield "delete.enabled", "It needs pk.mode=record_key."
    count = len([word for word in re.split(r"\s*,\s*", config.get("pk.fields", "")) if word])
    if key_mode == "kafka" and count not in (0, 3):
        yield "pk.fields", "pk.mode=kafka needs three names: topic, partition and offset."
