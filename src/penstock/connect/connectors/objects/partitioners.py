"""Which folder a record goes to: by its partition, by fields of it, or by its time.

Folders are named `name=value`, as Hive, Spark and DuckDB read them. What could be taken for a
separator is written with a percent sign, so no value can lead out of its folder.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from penstock.connect.connectors.objects.times import (
    TimeFolders,
    nested_field,
    time_extractor,
)
from penstock.connect.errors.kinds import DataError
from penstock.connect.records import SinkRecord
from penstock.connect.values.shown import text_form
from penstock.connect.values.struct import StructValue

Folder = Callable[[SinkRecord, int], str]  # A record and the clock's milliseconds.
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
DAILY = "'year'=YYYY/'month'=MM/'day'=dd"
HOURLY = f"{DAILY}/'hour'=HH"
_UNSAFE = re.compile(r"[/\\%\x00-\x1f\x7f]")


def partitioner(config: Mapping[str, Any]) -> Folder:
    """The one of `partitioner.class`, by the end of its name."""
    word = config["partitioner.class"].rpartition(".")[2].removesuffix("Partitioner")
    if word == "Field":
        return _by_fields(config["partition.field.name"], config["directory.delim"])
    if word == "TimeBased":
        return _by_time(config, config["path.format"], config["partition.duration.ms"])
    if word == "Daily":
        return _by_time(config, DAILY, DAY_MS)
    if word == "Hourly":
        return _by_time(config, HOURLY, HOUR_MS)
    return _by_partition


def is_time_based(class_name: str) -> bool:
    """Whether a partitioner asks for the time of records."""
    word = class_name.rpartition(".")[2].removesuffix("Partitioner")
    return word in ("TimeBased", "Daily", "Hourly")


def is_by_partition(class_name: str) -> bool:
    """Whether all records of a partition go to one folder."""
    return class_name.rpartition(".")[2].removesuffix("Partitioner") == "Default"


def _by_partition(record: SinkRecord, now_ms: int) -> str:
    return f"partition={source_partition(record)}"


def _by_fields(fields: list[str], delimiter: str) -> Folder:
    def folder(record: SinkRecord, now_ms: int) -> str:
        return delimiter.join(f"{name}={_shown(record.value, name)}" for name in fields)

    return folder


def _by_time(config: Mapping[str, Any], pattern: str, duration_ms: int) -> Folder:
    time_of = time_extractor(config["timestamp.extractor"], config["timestamp.field"])
    folders = TimeFolders(pattern, config["timezone"] or "UTC", duration_ms)
    return lambda record, now_ms: folders.folder(time_of(record, now_ms))


def _shown(value: Any, path: str) -> str:
    value = nested_field(value, path, "be partitioned by")
    if isinstance(value, dict | list | StructValue | bytes):
        raise DataError(f"the field {path} is no number, text or boolean to be partitioned by")
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", text_form(None, value))


def source_topic(record: SinkRecord) -> str:
    """The topic it was read from, whatever transforms have made of it."""
    return record.original_topic or record.topic


def source_partition(record: SinkRecord) -> int:
    """The partition it was read from."""
    found = record.partition if record.original_partition is None else record.original_partition
    return found or 0


def source_offset(record: SinkRecord) -> int:
    """The offset it was read from."""
    return record.offset if record.original_offset is None else record.original_offset
