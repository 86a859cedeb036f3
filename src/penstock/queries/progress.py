"""What Spark reports after each batch, as the few numbers that tell how a query is doing."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBatch:
    """One batch of a query."""

    batch: int
    rows: int
    input_rows_per_s: float | None
    processed_rows_per_s: float | None
    batch_ms: int
    late_rows: int  # Behind the watermark, so not counted.
    watermark: str | None


def progress_of(document: Mapping[str, Any], *, rows_are_sums: bool = False) -> QueryBatch:
    """The numbers of one StreamingQueryProgress, given as its JSON document.

    Where what the source sends to Spark are sums of many records, offsets tell how many those are.
    """
    operators = document.get("stateOperators") or []
    rows = int(document.get("numInputRows", 0))
    read = sum(map(_offsets, document.get("sources") or [])) if rows_are_sums else rows
    of_a_row = read / rows if rows else 1.0
    return QueryBatch(
        batch=int(document["batchId"]),
        rows=read,
        input_rows_per_s=_rate(document.get("inputRowsPerSecond"), of_a_row),
        processed_rows_per_s=_rate(document.get("processedRowsPerSecond"), of_a_row),
        batch_ms=int((document.get("durationMs") or {}).get("triggerExecution", 0)),
        late_rows=sum(int(one.get("numRowsDroppedByWatermark", 0)) for one in operators),
        watermark=(document.get("eventTime") or {}).get("watermark"),
    )


def _offsets(source: Mapping[str, Any]) -> int:
    """How many offsets a batch has of a source."""
    start, end = (_positions(source.get(name)) for name in ("startOffset", "endOffset"))
    return sum(
        at - start.get(topic, {}).get(partition, 0)
        for topic, partitions in end.items()
        for partition, at in partitions.items()
    )


def _positions(told: str | None) -> Mapping[str, Mapping[str, int]]:
    """By topic and partition, from JSON; a first batch has no start, which is taken for 0."""
    found: Mapping[str, Mapping[str, int]] | None = json.loads(told) if told else None
    return found or {}


def _rate(value: object, of_a_row: float = 1.0) -> float | None:
    """Records a second; Spark writes NaN and Infinity for a batch that took no time."""
    if not isinstance(value, int | float) or value != value or value == float("inf"):
        return None
    return value * of_a_row
