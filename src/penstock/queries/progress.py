"""What Spark reports after each batch, as the few numbers that tell how a query is doing."""

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


def progress_of(document: Mapping[str, Any]) -> QueryBatch:
    """The numbers of one StreamingQueryProgress, given as its JSON document."""
    operators = document.get("stateOperators") or []
    return QueryBatch(
        batch=int(document["batchId"]),
        rows=int(document.get("numInputRows", 0)),
        input_rows_per_s=_rate(document.get("inputRowsPerSecond")),
        processed_rows_per_s=_rate(document.get("processedRowsPerSecond")),
        batch_ms=int((document.get("durationMs") or {}).get("triggerExecution", 0)),
        late_rows=sum(int(one.get("numRowsDroppedByWatermark", 0)) for one in operators),
        watermark=(document.get("eventTime") or {}).get("watermark"),
    )


def _rate(value: object) -> float | None:
    """Spark writes NaN and Infinity for a batch that took no time."""
    if not isinstance(value, int | float) or value != value or value == float("inf"):
        return None
    return float(value)
