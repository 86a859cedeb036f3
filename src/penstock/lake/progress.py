"""How a sync is doing: rows and rate of each batch, and how far the table is behind the topic.

The commit leaves the number of rows of the last batches beside the table, for only it knows them
(offsets have gaps); the time a batch took and the lag are in Spark's own reports. What is told here
is for people: no decision hangs on it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.lake.formats.tables import own_folder
from penstock.lake.spec import TableSpec

_KEPT = 100  # As many as Spark keeps reports.
_ROWS, _DEAD_LETTERS = "rows.json", "dead_letters.json"

Offsets = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    batch_id: int
    rows: int
    took_ms: int
    lag: int  # Records that were in the topic and not yet in the table when the batch was planned.
    dead_letters: int = 0

    @property
    def rows_per_s(self) -> float:
        return self.rows * 1000 / max(self.took_ms, 1)


def remember_rows(spec: TableSpec, batch_id: int, rows: int) -> None:
    """Tell whoever watches how many rows a batch had."""
    _remember(spec, _ROWS, batch_id, rows)


def remember_dead_letters(spec: TableSpec, batch_id: int, count: int) -> None:
    """Tell whoever watches how many records of a batch could not be decoded."""
    _remember(spec, _DEAD_LETTERS, batch_id, count)


def rows_of_batches(spec: TableSpec) -> dict[int, int]:
    """The rows of the last batches."""
    return _remembered(spec, _ROWS)


def dead_letters_of_batches(spec: TableSpec) -> dict[int, int]:
    """The dead letters of the last batches that had any."""
    return _remembered(spec, _DEAD_LETTERS)


def _remember(spec: TableSpec, name: str, batch_id: int, count: int) -> None:
    known = {**_remembered(spec, name), batch_id: count}
    latest = {number: known[number] for number in sorted(known)[-_KEPT:]}
    path = own_folder(spec) / name
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(latest))
    fresh.replace(path)


def _remembered(spec: TableSpec, name: str) -> dict[int, int]:
    try:
        text = (own_folder(spec) / name).read_text()
    except FileNotFoundError:
        return {}
    return {int(batch_id): count for batch_id, count in json.loads(text).items()}


def new_batches(
    reports: Iterable[Mapping[str, Any]],
    rows: Mapping[int, int],
    dead_letters: Mapping[int, int],
    *,
    after_batch_id: int,
) -> list[BatchProgress]:
    """The batches with records that were not seen before."""
    found = [
        progress_of(report, rows.get(report["batchId"], 0), dead_letters.get(report["batchId"], 0))
        for report in reports
        if report["batchId"] > after_batch_id
    ]
    return [one for one in found if one.rows or one.dead_letters]


def progress_of(report: Mapping[str, Any], rows: int, dead_letters: int = 0) -> BatchProgress:
    """One of the query's reports, with the rows that the commit has told."""
    source = report["sources"][0]
    end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    return BatchProgress(
        batch_id=report["batchId"],
        rows=rows,
        took_ms=report["batchDuration"],
        lag=_between(end, latest),
        dead_letters=dead_letters,
    )


def _offsets(text: str | Offsets | None) -> Offsets:
    found = json.loads(text) if isinstance(text, str) and text else text
    return found if isinstance(found, dict) else {}


def _between(start: Offsets, end: Offsets) -> int:
    return sum(
        max(0, at - start.get(topic, {}).get(partition, 0))
        for topic, partitions in end.items()
        for partition, at in partitions.items()
    )
