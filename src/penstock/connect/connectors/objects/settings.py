"""Settings that sinks and sources of object stores share, by Confluent's names, and what
contradicts what in them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.connect.connectors.objects.formats.avro_container import CODECS as AVRO_CODECS
from penstock.connect.connectors.objects.formats.contract import FORMATS, format_word
from penstock.connect.connectors.objects.formats.parquet import CODECS as PARQUET_CODECS
from penstock.connect.connectors.objects.partitioners import is_time_based
from penstock.connect.connectors.objects.times import EXTRACTORS, simple_pattern
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    CheckedValue,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import AtLeast, Judged, OneOfWords
from penstock.connect.values.date_format import DateFormat
from penstock.errors import ConfigError

PARTITIONERS = ("Default", "Field", "TimeBased", "Daily", "Hourly")
_STORAGE = "io.confluent.connect.storage"


def _is_format(value: Any) -> str | None:
    if value is not None and format_word(value) in FORMATS:
        return None
    return f"Must be a class that ends with one of: {', '.join(FORMATS)}"


def _is_partitioner(value: Any) -> str | None:
    word = (value or "").rpartition(".")[2].removesuffix("Partitioner")
    if word in PARTITIONERS:
        return None
    return f"Must be one of: {', '.join(f'{one}Partitioner' for one in PARTITIONERS)}"


def _is_extractor(value: Any) -> str | None:
    word = (value or "").rpartition(".")[2].removesuffix("TimestampExtractor")
    return None if word in EXTRACTORS else f"Must be one of: {', '.join(EXTRACTORS)}"


def _is_zone(value: Any) -> str | None:
    try:
        ZoneInfo(value or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "There is no such time zone"
    return None


def _is_english(value: Any) -> str | None:
    is_known = not value or value.replace("_", "-").partition("-")[0].lower() == "en"
    return None if is_known else "Months and days have English names alone: use en"


def _is_path(value: Any) -> str | None:
    try:
        DateFormat(simple_pattern(value or ""))
    except ConfigError as error:
        return str(error)
    return None


FORMAT_CONFIG = ConfigDef(
    ConfigEntry(
        "format.class",
        ConfigType.CLASS,
        NO_DEFAULT,
        Importance.HIGH,
        "How records lie in an object: JsonFormat, AvroFormat, ParquetFormat or ByteArrayFormat.",
        validator=Judged(_is_format, "a format"),
    ),
    ConfigEntry(
        "topics.dir",
        ConfigType.STRING,
        "topics",
        Importance.HIGH,
        "The folder that the folders of topics lie in.",
    ),
    ConfigEntry(
        "directory.delim",
        ConfigType.STRING,
        "/",
        Importance.MEDIUM,
        "What stands between folders.",
        validator=OneOfWords(("/",)),
    ),
    ConfigEntry(
        "file.delim",
        ConfigType.STRING,
        "+",
        Importance.MEDIUM,
        "What stands between topic, partition and offset in the name of an object.",
        validator=Judged(lambda text: None if text and "/" not in text else "Not so", "no slash"),
    ),
    ConfigEntry(
        "filename.offset.zero.pad.width",
        ConfigType.INT,
        10,
        Importance.LOW,
        "How many digits an offset has in the name of an object, at least.",
        validator=AtLeast(0),
    ),
    ConfigEntry(
        "format.bytearray.extension",
        ConfigType.STRING,
        ".bin",
        Importance.LOW,
        "How names of objects of ByteArrayFormat end.",
    ),
    ConfigEntry(
        "format.bytearray.separator",
        ConfigType.STRING,
        None,
        Importance.LOW,
        "What stands behind each value in ByteArrayFormat; the end of a line if it is not given.",
    ),
    ConfigEntry(
        "json.decimal.format",
        ConfigType.STRING,
        "BASE64",
        Importance.LOW,
        "How JsonFormat writes decimals: BASE64 or NUMERIC.",
        validator=OneOfWords(("BASE64", "NUMERIC"), any_case=True),
    ),
    ConfigEntry(
        "avro.codec",
        ConfigType.STRING,
        "null",
        Importance.LOW,
        "How AvroFormat compresses: null or deflate.",
        validator=OneOfWords(AVRO_CODECS),
    ),
    ConfigEntry(
        "parquet.codec",
        ConfigType.STRING,
        "snappy",
        Importance.LOW,
        "How ParquetFormat compresses: none, snappy, gzip, lz4, zstd or brotli.",
        validator=OneOfWords(PARQUET_CODECS),
    ),
)
SINK_CONFIG = FORMAT_CONFIG + ConfigDef(
    ConfigEntry(
        "flush.size",
        ConfigType.INT,
        NO_DEFAULT,
        Importance.HIGH,
        "How many records an object has, at most.",
        validator=AtLeast(1),
    ),
    ConfigEntry(
        "rotate.interval.ms",
        ConfigType.LONG,
        -1,
        Importance.HIGH,
        "How far apart the times of records in an object may be; -1: as far as they like. Times "
        "are those of timestamp.extractor.",
    ),
    ConfigEntry(
        "rotate.schedule.interval.ms",
        ConfigType.LONG,
        -1,
        Importance.MEDIUM,
        "After how long by the clock what is there is stored; -1: never. It is looked at when "
        "offsets are committed, and makes the sink at least once.",
    ),
    ConfigEntry(
        "schema.compatibility",
        ConfigType.STRING,
        "NONE",
        Importance.HIGH,
        "NONE: a record of another schema begins another object.",
        validator=OneOfWords(("NONE",), any_case=True),
    ),
    ConfigEntry(
        "partitioner.class",
        ConfigType.CLASS,
        f"{_STORAGE}.partitioner.DefaultPartitioner",
        Importance.HIGH,
        "Which folder a record goes to.",
        validator=Judged(_is_partitioner, "a partitioner"),
    ),
    ConfigEntry(
        "partition.field.name",
        ConfigType.LIST,
        "",
        Importance.MEDIUM,
        "The fields that FieldPartitioner makes folders of.",
    ),
    ConfigEntry(
        "partition.duration.ms",
        ConfigType.LONG,
        -1,
        Importance.MEDIUM,
        "How long a folder of TimeBasedPartitioner lasts.",
    ),
    ConfigEntry(
        "path.format",
        ConfigType.STRING,
        "",
        Importance.MEDIUM,
        "The folders of TimeBasedPartitioner, in Joda's letters: 'year'=YYYY/'month'=MM.",
        validator=Judged(_is_path, "a pattern"),
    ),
    ConfigEntry(
        "locale",
        ConfigType.STRING,
        "",
        Importance.MEDIUM,
        "The language of months and days in path.format.",
        validator=Judged(_is_english, "a locale"),
    ),
    ConfigEntry(
        "timezone",
        ConfigType.STRING,
        "",
        Importance.MEDIUM,
        "The time zone of path.format, such as Europe/Berlin.",
        validator=Judged(_is_zone, "a time zone"),
    ),
    ConfigEntry(
        "timestamp.extractor",
        ConfigType.STRING,
        "Wallclock",
        Importance.MEDIUM,
        "The time of a record: Wallclock, Record (its timestamp) or RecordField.",
        validator=Judged(_is_extractor, "an extractor"),
    ),
    ConfigEntry(
        "timestamp.field",
        ConfigType.STRING,
        "timestamp",
        Importance.MEDIUM,
        "The field that RecordField takes the time from.",
    ),
    ConfigEntry(
        "behavior.on.null.values",
        ConfigType.STRING,
        "fail",
        Importance.LOW,
        "What becomes of a record without a value: fail or ignore.",
        validator=OneOfWords(("fail", "ignore"), any_case=True),
    ),
    ConfigEntry(
        "retry.backoff.ms",
        ConfigType.LONG,
        5000,
        Importance.LOW,
        "How long to wait before a store that cannot be reached is tried again.",
        validator=AtLeast(0),
    ),
)


def checked_sink(checked: CheckedConfig) -> CheckedConfig:
    """With the errors of settings that need each other."""
    values = {one.entry.name: one.value for one in checked.values}
    for name, sentence in _missing(values):
        checked = with_error(checked, name, sentence)
    return checked


def _missing(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    partitioner = values.get("partitioner.class") or ""
    found = []
    if partitioner.endswith("FieldPartitioner") and not values.get("partition.field.name"):
        found.append(("partition.field.name", f"{partitioner} needs the names of fields."))
    if partitioner.endswith("TimeBasedPartitioner"):
        if not values.get("path.format"):
            found.append(("path.format", f"{partitioner} needs a pattern."))
        if (values.get("partition.duration.ms") or -1) <= 0:
            found.append(("partition.duration.ms", f"{partitioner} needs a duration above 0."))
    needs_zone = is_time_based(partitioner) or (values.get("rotate.schedule.interval.ms") or -1) > 0
    if needs_zone and not values.get("timezone"):
        found.append(("timezone", "It must be given with time-based folders or schedules."))
    return found


def with_error(checked: CheckedConfig, name: str, sentence: str) -> CheckedConfig:
    """The same, with one more error at a setting."""

    def told(one: CheckedValue) -> CheckedValue:
        return replace(one, errors=(*one.errors, sentence)) if one.entry.name == name else one

    return replace(checked, values=tuple(told(one) for one in checked.values))
