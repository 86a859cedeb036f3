"""Settings of the Elasticsearch sink, by Confluent's names."""

import re
from typing import Any

from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    CheckedValue,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import AllOf, AtLeast, Judged, NonEmptyList, OneOfWords

_URL = re.compile(r"https?://[^/\s]+(/\S*)?")


def _are_urls(value: Any) -> str | None:
    wrong = [one for one in value or () if not _URL.fullmatch(one)]
    return f"{wrong[0]} is no http:// or https:// address" if wrong else None


CONFIG = ConfigDef(
    ConfigEntry(
        "connection.url",
        ConfigType.LIST,
        NO_DEFAULT,
        Importance.HIGH,
        "Addresses of nodes; the next one is tried where one cannot be reached.",
        validator=AllOf((NonEmptyList(), Judged(_are_urls, "URLs"))),
    ),
    ConfigEntry("connection.username", ConfigType.STRING, None, Importance.MEDIUM, "A user."),
    ConfigEntry(
        "connection.password", ConfigType.PASSWORD, None, Importance.MEDIUM, "His password."
    ),
    ConfigEntry(
        "connection.timeout.ms",
        ConfigType.INT,
        1000,
        Importance.LOW,
        "How long a connection may take.",
        validator=AtLeast(1),
    ),
    ConfigEntry(
        "read.timeout.ms",
        ConfigType.INT,
        3000,
        Importance.LOW,
        "How long an answer may take.",
        validator=AtLeast(1),
    ),
    ConfigEntry(
        "connection.compression",
        ConfigType.BOOLEAN,
        False,
        Importance.LOW,
        "Whether requests are sent with gzip.",
    ),
    ConfigEntry(
        "batch.size",
        ConfigType.INT,
        2000,
        Importance.MEDIUM,
        "How many records a bulk call has, at most.",
        validator=AtLeast(1),
    ),
    ConfigEntry(
        "bulk.size.bytes",
        ConfigType.LONG,
        5 << 20,
        Importance.LOW,
        "How many bytes a bulk call has, at most, unless one record alone has more.",
        validator=AtLeast(1),
    ),
    ConfigEntry(
        "max.retries",
        ConfigType.INT,
        5,
        Importance.LOW,
        "How often in a row a call is made again before the task fails.",
        validator=AtLeast(0),
    ),
    ConfigEntry(
        "retry.backoff.ms",
        ConfigType.LONG,
        100,
        Importance.LOW,
        "How long to wait before a call is made again; each time twice as long, up to a minute.",
        validator=AtLeast(0),
    ),
    ConfigEntry(
        "key.ignore",
        ConfigType.BOOLEAN,
        False,
        Importance.HIGH,
        "true: a document is known by topic+partition+offset, and not by the record's key.",
    ),
    ConfigEntry(
        "topic.key.ignore",
        ConfigType.LIST,
        "",
        Importance.LOW,
        "Topics whose keys are ignored whatever key.ignore says.",
    ),
    ConfigEntry(
        "schema.ignore",
        ConfigType.BOOLEAN,
        False,
        Importance.LOW,
        "true: the server makes the mapping of an index. false: it is made of the schema.",
    ),
    ConfigEntry(
        "topic.schema.ignore",
        ConfigType.LIST,
        "",
        Importance.LOW,
        "Topics whose schemas are ignored whatever schema.ignore says.",
    ),
    ConfigEntry(
        "write.method",
        ConfigType.STRING,
        "INSERT",
        Importance.LOW,
        "INSERT: a document takes the place of the one before. UPSERT: its fields do.",
        validator=OneOfWords(("INSERT", "UPSERT"), any_case=True),
    ),
    ConfigEntry(
        "behavior.on.null.values",
        ConfigType.STRING,
        "FAIL",
        Importance.LOW,
        "What a record without a value does: DELETE its document, IGNORE or FAIL.",
        validator=OneOfWords(("FAIL", "IGNORE", "DELETE"), any_case=True),
    ),
    ConfigEntry(
        "behavior.on.malformed.documents",
        ConfigType.STRING,
        "FAIL",
        Importance.LOW,
        "What becomes of a document that the server does not take: FAIL, IGNORE or WARN. Where "
        "errors.tolerance=all it is put aside.",
        validator=OneOfWords(("FAIL", "IGNORE", "WARN"), any_case=True),
    ),
    ConfigEntry(
        "drop.invalid.message",
        ConfigType.BOOLEAN,
        False,
        Importance.LOW,
        "Whether a record that cannot become a document is passed.",
    ),
    ConfigEntry(
        "external.version.header",
        ConfigType.STRING,
        "",
        Importance.LOW,
        "The header that has the version of a document; the offset if it is not given.",
    ),
)


def checked_together(checked: CheckedConfig) -> CheckedConfig:
    """With the errors of settings that need or exclude each other."""
    values = {one.entry.name: one.value for one in checked.values}
    found: dict[str, str] = {}
    if bool(values.get("connection.username")) != bool(values.get("connection.password")):
        found["connection.username"] = "User and password are given together, or neither of them."
    if (values.get("write.method") or "").upper() == "UPSERT":
        if values.get("key.ignore"):
            found["write.method"] = "UPSERT needs keys, and key.ignore is true."
        elif values.get("external.version.header"):
            found["external.version.header"] = "UPSERT has no versions."
    is_delete = (values.get("behavior.on.null.values") or "").upper() == "DELETE"
    if is_delete and values.get("key.ignore"):
        found["behavior.on.null.values"] = "DELETE needs keys, and key.ignore is true."
    told = tuple(_told(one, found.get(one.entry.name)) for one in checked.values)
    return CheckedConfig(values=told, groups=checked.groups)


def _told(one: CheckedValue, sentence: str | None) -> CheckedValue:
    if sentence is None:
        return one
    return CheckedValue(entry=one.entry, value=one.value, errors=(*one.errors, sentence))
