"""The settings of the JDBC source, by Confluent's names."""

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.connect.connectors.checks import unserved_settings, with_errors
from penstock.connect.connectors.jdbc.addresses import DatabaseAddress
from penstock.connect.connectors.jdbc.queries import SourceMode
from penstock.connect.connectors.jdbc.row_types import NumericMapping
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.libraries import missing_library
from penstock.connect.plugins.validators import AtLeast, Judged, OneOfWords
from penstock.errors import ConfigError


def judge_address(value: Any) -> str | None:
    """What is wrong with an address; None: nothing."""
    if value is None:
        return None  # That it is missing is told already.
    try:
        DatabaseAddress.of(value)
    except ConfigError as error:
        return str(error)
    return None


CONNECTION = (
    ConfigEntry(
        "connection.url", ConfigType.STRING, NO_DEFAULT, Importance.HIGH,
        "jdbc:postgresql://host/name, jdbc:mariadb://..., jdbc:mysql://... or jdbc:sqlite:file.",
        validator=Judged(judge_address, "an address of JDBC"),
    ),
    ConfigEntry("connection.user", ConfigType.STRING, None, Importance.HIGH, "Who logs in."),
    ConfigEntry("connection.password", ConfigType.PASSWORD, None, Importance.HIGH, "The password."),
    ConfigEntry("connection.attempts", ConfigType.INT, 3, Importance.LOW,
                "How often a database that is away is tried before the task fails.",
                validator=AtLeast(1)),
    ConfigEntry("connection.backoff.ms", ConfigType.LONG, 10_000, Importance.LOW,
                "How long to wait between tries.", validator=AtLeast(0)),
)  # fmt: skip
CONFIG = ConfigDef(
    *CONNECTION,
    ConfigEntry("mode", ConfigType.STRING, NO_DEFAULT, Importance.HIGH,
                "How new rows are found.", validator=OneOfWords(tuple(SourceMode))),
    ConfigEntry("incrementing.column.name", ConfigType.STRING, "", Importance.MEDIUM,
                "The column that counts up; it must never be null."),
    ConfigEntry("timestamp.column.name", ConfigType.LIST, [], Importance.MEDIUM,
                "Columns that tell when a row changed; the first that is not null counts."),
    ConfigEntry("table.whitelist", ConfigType.LIST, [], Importance.MEDIUM,
                "The tables to read; without it and table.blacklist, all."),
    ConfigEntry("table.include.list", ConfigType.LIST, [], Importance.MEDIUM,
                "Another name for table.whitelist."),
    ConfigEntry("table.blacklist", ConfigType.LIST, [], Importance.MEDIUM, "Tables not to read."),
    ConfigEntry("query", ConfigType.STRING, "", Importance.MEDIUM,
                "A query to read instead of tables; conditions are put behind it."),
    ConfigEntry("topic.prefix", ConfigType.STRING, NO_DEFAULT, Importance.HIGH,
                "Stands before the table's name; with a query it is the topic."),
    ConfigEntry("poll.interval.ms", ConfigType.INT, 5000, Importance.HIGH,
                "How often each table is asked.", validator=AtLeast(1)),
    ConfigEntry("batch.max.rows", ConfigType.INT, 100, Importance.LOW,
                "Rows that one poll brings, at most.", validator=AtLeast(1)),
    ConfigEntry("timestamp.delay.interval.ms", ConfigType.LONG, 0, Importance.HIGH,
                "How old a row must be, so that transactions with an older time can end.",
                validator=AtLeast(0)),
    ConfigEntry("numeric.mapping", ConfigType.STRING, "none", Importance.LOW,
                "What becomes of decimals.", validator=OneOfWords(tuple(NumericMapping))),
)  # fmt: skip

# Settings of Confluent's that nothing here obeys, with the value that changes nothing.
UNSERVED = {
    "catalog.pattern": "",
    "db.timezone": "UTC",
    "dialect.name": "",
    "numeric.precision.mapping": "false",
    "query.suffix": "",
    "quote.sql.identifiers": "ALWAYS",
    "schema.pattern": "",
    "table.poll.interval.ms": "",
    "table.types": "TABLE",
    "timestamp.granularity": "connect_logical",
    "timestamp.initial": "",
    "transaction.isolation.mode": "DEFAULT",
    "validate.non.null": "true",
}


def tables_of(parsed: Mapping[str, Any]) -> list[str]:
    """The tables that are named."""
    return [*parsed["table.whitelist"], *parsed["table.include.list"]]


def validated(config: Mapping[str, str]) -> CheckedConfig:
    """Every setting with its errors, also of settings together."""
    return with_errors(CONFIG.validate(config), _together(config))


def connection_errors(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """A library that is missing."""
    try:
        library = DatabaseAddress.of(config.get("connection.url", "")).library
    except ConfigError:
        return
    lacking = missing_library(library) if library else None
    if lacking is not None:
        yield "connection.url", lacking


def ensure_served(config: Mapping[str, str], unserved: Mapping[str, str]) -> None:
    """ConfigError for a setting of Confluent's that would be ignored."""
    for sentence in unserved_settings(config, unserved):
        raise ConfigError(sentence)


def _together(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from connection_errors(config)
    yield from (("connection.url", one) for one in unserved_settings(config, UNSERVED))
    named = config.get("table.whitelist") or config.get("table.include.list")
    if named and config.get("table.blacklist"):
        yield "table.blacklist", "It cannot be given together with a list of tables."
    if config.get("query") and (named or config.get("table.blacklist")):
        yield "query", "It cannot be given together with lists of tables."
    try:
        mode = SourceMode(config.get("mode", ""))
    except ValueError:
        return
    if mode.has_number and not config.get("incrementing.column.name"):
        yield "incrementing.column.name", f"The mode {mode} needs it."
    if mode.has_time and not config.get("timestamp.column.name"):
        yield "timestamp.column.name", f"The mode {mode} needs it."
