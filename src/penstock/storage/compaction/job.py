"""What the broker hands to a cleaning process: one log, as it is now, and what to do with it.

Only numbers and names travel, as one line of JSON: the process reads the files itself. The answers
are small dicts, described in `worker.py`.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from penstock.storage.log.config import LogConfig
from penstock.storage.segments import offset_index, time_index
from penstock.storage.segments.segment import LOG_SUFFIX, Segment

FAILED_FOR_GOOD = "corrupt"  # The log cannot be cleaned until somebody mends it.
FAILED_FOR_NOW = "trouble"  # Disk or memory: worth another try.


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFacts:
    """A closed segment; `end_offset` is where the next one begins."""

    base_offset: int
    end_offset: int
    size: int
    modified_ms: int
    index_bytes: int
    time_index_bytes: int
    aborted_count: int

    @classmethod
    def of(cls, segment: Segment, end_offset: int) -> "SegmentFacts":
        return cls(
            base_offset=segment.base_offset,
            end_offset=end_offset,
            size=segment.size,
            modified_ms=segment.modified_ms(),
            index_bytes=segment.offsets.file.count * offset_index.ENTRY_BYTES,
            time_index_bytes=segment.times.file.count * time_index.ENTRY_BYTES,
            aborted_count=segment.transactions.count,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanJob:
    """Clean a log up to `end_offset`, before which everything is committed and decided."""

    directory: str
    first_dirty: int  # What lies before was cleaned already.
    end_offset: int
    now_ms: int
    segments: tuple[SegmentFacts, ...]  # From the log's first up to `end_offset`.
    later_aborted: tuple[tuple[int, int], ...]  # Base offset and count of the indexes behind.
    producers: tuple[tuple[int, int, int], ...]  # Id, last offset of data (-1: none), epoch.
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    delete_retention_ms: int
    levels: Mapping[str, int]  # By the name of the codec.
    map_bytes: int
    load_factor: float
    io_bytes: int
    bytes_per_s: float

    def encode(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def decode(cls, fields: dict[str, Any]) -> "CleanJob":
        fields["segments"] = tuple(SegmentFacts(**facts) for facts in fields["segments"])
        fields["later_aborted"] = tuple((base, count) for base, count in fields["later_aborted"])
        fields["producers"] = tuple((one, two, three) for one, two, three in fields["producers"])
        return cls(**fields)

    def log_path(self, facts: SegmentFacts) -> str:
        return f"{self.directory}/{facts.base_offset:020d}{LOG_SUFFIX}"

    @property
    def log_config(self) -> LogConfig:
        """As far as a segment needs it."""
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_index_bytes=self.segment_index_bytes,
            index_interval_bytes=self.index_interval_bytes,
        )
