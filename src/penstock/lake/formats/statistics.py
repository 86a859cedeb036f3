"""What a Parquet file's footer tells of its columns, in the JSON that Delta keeps per file.

Readers skip files by it. Only bounds that are exact are given; a column without them is read.
"""

import json
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_COLUMNS_MAX = 32  # As Delta's own writers do by default.
_TEXT_MAX = 32


def delta_statistics(footer: pq.FileMetaData, schema: pa.Schema) -> str:
    """numRecords, and for the first columns the bounds and the number of nulls."""
    lows: dict[str, object] = {}
    highs: dict[str, object] = {}
    nulls: dict[str, int] = {}
    for field in list(schema)[:_COLUMNS_MAX]:
        found = _bounds(footer, field)
        if found is not None:
            low, high, nulls[field.name] = found
            if low is not None and high is not None:
                lows[field.name], highs[field.name] = low, high
    return json.dumps(
        {
            "numRecords": footer.num_rows,
            "minValues": lows,
            "maxValues": highs,
            "nullCount": nulls,
        }
    )


def _bounds(footer: pq.FileMetaData, field: pa.Field) -> tuple[object, object, int] | None:
    if pa.types.is_nested(field.type):
        return None
    chunks = _chunks(footer, field.name)
    if not chunks or any(chunk is None or not chunk.has_null_count for chunk in chunks):
        return None
    nulls = sum(chunk.null_count for chunk in chunks)
    filled = [chunk for chunk in chunks if chunk.num_values]
    if not filled or not all(chunk.has_min_max for chunk in filled):
        return None, None, nulls
    low = min(chunk.min for chunk in filled)
    high = max(chunk.max for chunk in filled)
    return _as_json(low), _as_json(high), nulls


def _chunks(footer: pq.FileMetaData, name: str) -> list[Any]:
    found = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for at in range(group.num_columns):
            column = group.column(at)
            if column.path_in_schema == name:
                found.append(column.statistics)
    return found


def _as_json(value: object) -> object:
    """None: a value that JSON would bend, so there is no bound."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, datetime):
        # Delta's bounds of timestamps are whole milliseconds, so only exact ones are told.
        zone = "Z" if value.tzinfo else ""
        text = value.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone
        return text if value.microsecond % 1000 == 0 else None
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        return value if len(value) <= _TEXT_MAX else None
    return None
