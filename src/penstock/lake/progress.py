"""How a sync is doing, from what Spark reports after each batch: rows, rate, lag.

The source's offsets tell it all: a batch's rows lie between its start and its end, and what is
still to do between its end and the end of the topic.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Offsets = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    batch_id: int
    rows: int
    took_ms: int
    lag: int  # Records that were in the topic and not yet in the table when the batch was planned.

    @property
    def rows_per_s(self) -> float:
        return self.rows * 1000 / max(self.took_ms, 1)


def progress_of(report: Mapping[str, Any]) -> BatchProgress:
    """One of the query's progress reports."""
    source = report["sources"][0]
    start, end = _offsets(source.get("startOffset")), _offsets(source.get("endOffset"))
    latest = _offsets(source.get("latestOffset"))
    return BatchProgress(
        batch_id=report["batchId"],
        rows=_between(start, end),
        took_ms=report["batchDuration"],
        lag=_between(end, latest),
    )


def new_reports(
    reports: Iterable[Mapping[str, Any]], *, after_batch_id: int
) -> list[BatchProgress]:
    """Those of batches with rows that were not seen before; Spark keeps the last hundred."""
    found = [progress_of(report) for report in reports if report["batchId"] > after_batch_id]
    return [one for one in found if one.rows]


def _offsets(text: str | Offsets | None) -> Offsets:
    if not text:
        return {}
    return json.loads(text) if isinstance(text, str) else text


def _between(start: Offsets, end: Offsets) -> int:
    """Records from one to the other; a partition that is new begins at 0."""
    return sum(
        max(0, at - start.get(topic, {}).get(partition, 0))
        for topic, partitions in end.items()
        for partition, at in partitions.items()
    )
