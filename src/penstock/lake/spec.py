"""What a table is to be: where, in which format, cut into which partitions, kept how.

A `TableSpec` is made once by the caller, travels as one JSON option through Spark's plan to the
workers and back to the driver's commit, and is all that any of them knows about the table.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.lake.errors import LakeError

FORMATS = ("delta", "iceberg", "parquet")
COMPRESSIONS = ("zstd", "snappy", "lz4", "gzip", "none")

# Everything of ours that is not data lies under this name in the table's directory. Readers of
# lake tables skip names that begin with an underscore.
OWN_FOLDER = "_penstock"
STAGING = f"{OWN_FOLDER}/staging"  # In it: files that no reader may find before their commit.
SPEC_FILE = "table.json"  # In it: what the table is, for tools that know only its directory.

_DATE_OF = re.compile(r"date\(\s*([^()\s]+)\s*\)(?:\s+as\s+(\w+))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumn:
    """One level of the table's folders: a column as it is, or the UTC date of a timestamp."""

    name: str
    source: str
    is_date: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Rows replace those of the same key instead of being added."""

    on: tuple[str, ...]
    order_by: str | None = None  # Which of several rows of a key in one batch is the last.
    delete_when: str | None = None  # An SQL condition on the new row that deletes the old one.


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDecoding:
    """How a topic's records become rows; see rows.py."""

    value_format: str = "raw"
    key_format: str = "raw"
    on_error: str = "fail"
    described: str | None = None  # A Format of penstock.spark.formats, pickled, in base64.
    # The source's options, passwords among them: the tasks read ranges.
    source: Mapping[str, str] | None = field(default=None, repr=False)
    dead_letter_topic: str | None = None  # With on_error "dead-letter".
    keeps_headers: bool = True  # Else they are read for dead letters alone.


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    directory: str
    format: str
    partition_by: tuple[PartitionColumn, ...] = ()
    merge: Merge | None = None
    decoding: TopicDecoding | None = None  # None: the rows come as they are to be.
    compression: str = "zstd"
    file_bytes_max: int = 128 << 20
    small_files_max: int = 16  # More small files than this in a partition are put together.
    compact_small_files: bool = True
    table_name: str = "lake.table"  # Iceberg's name of the table in its catalog.
    catalog: Mapping[str, str] = field(default_factory=dict)  # Empty: one inside the directory.

    def __post_init__(self) -> None:
        _one_of("format", self.format, FORMATS)
        _one_of("compression", self.compression, COMPRESSIONS)
        if self.merge and self.format != "delta":
            raise LakeError(f"merge_on needs format delta; {self.format} tables only grow")
        if self.small_files_max < 2:
            raise LakeError(f"small_files_max is {self.small_files_max}; it must be 2 or more")
        if self.file_bytes_max < 1 << 20:
            raise LakeError(f"file_bytes_max is {self.file_bytes_max}; it must be 1 MiB or more")

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "TableSpec":
        raw: dict[str, Any] = json.loads(text)
        raw["partition_by"] = tuple(PartitionColumn(**one) for one in raw["partition_by"])
        if raw["merge"] is not None:
            raw["merge"] = Merge(**{**raw["merge"], "on": tuple(raw["merge"]["on"])})
        if raw["decoding"] is not None:
            raw["decoding"] = TopicDecoding(**raw["decoding"])
        return cls(**raw)


def parse_partitioning(columns: str | Iterable[str] | None) -> tuple[PartitionColumn, ...]:
    """`"country, date(ts)"` or a list of such; `date(ts) as day` names the folder's column."""
    if columns is None:
        return ()
    words = columns.split(",") if isinstance(columns, str) else columns
    parsed = tuple(_partition_column(word.strip()) for word in words if word.strip())
    names = [column.name for column in parsed]
    if len(set(names)) != len(names):
        raise LakeError(f"partition_by names a column twice: {', '.join(names)}")
    return parsed


def _partition_column(word: str) -> PartitionColumn:
    if date_of := _DATE_OF.fullmatch(word):
        source, name = date_of.groups()
        return PartitionColumn(name=name or "date", source=source, is_date=True)
    if not re.fullmatch(r"\w+", word):
        raise LakeError(
            f"partition_by has {word!r}; write the name of a column, or date(column) for its day"
        )
    return PartitionColumn(name=word, source=word)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise LakeError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
