"""Spark's report of a batch, as numbers."""

import math

from penstock.queries.progress import progress_of


def test_the_numbers_of_a_batch_are_found() -> None:
    document = {
        "batchId": 4,
        "numInputRows": 120,
        "inputRowsPerSecond": 60.5,
        "processedRowsPerSecond": 240.0,
        "durationMs": {"triggerExecution": 500, "addBatch": 300},
        "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
        "stateOperators": [{"numRowsDroppedByWatermark": 2}, {"numRowsDroppedByWatermark": 1}],
    }
    found = progress_of(document)
    assert (found.batch, found.rows, found.batch_ms, found.late_rows) == (4, 120, 500, 3)
    assert (found.input_rows_per_s, found.processed_rows_per_s) == (60.5, 240.0)
    assert found.watermark == "2026-01-01T00:00:00.000Z"


def test_where_rows_are_sums_the_offsets_tell_how_many_records_they_are_of() -> None:
    document = {
        "batchId": 4,
        "numInputRows": 2,
        "inputRowsPerSecond": 4.0,
        "processedRowsPerSecond": 8.0,
        "sources": [
            {
                "startOffset": '{"clicks": {"0": 5}}',
                "endOffset": '{"clicks": {"0": 65, "1": 40}}',  # Partition 1 is new.
            },
            {"startOffset": "null", "endOffset": '{"views": {"0": 7}}'},
        ],
    }
    found = progress_of(document, rows_are_sums=True)
    assert found.rows == 107
    assert (found.input_rows_per_s, found.processed_rows_per_s) == (214.0, 428.0)
    assert progress_of({"batchId": 5}, rows_are_sums=True).rows == 0


def test_a_rate_that_is_no_number_is_unknown() -> None:
    found = progress_of({"batchId": 0, "inputRowsPerSecond": math.nan})
    assert found.input_rows_per_s is None and found.processed_rows_per_s is None
    assert progress_of({"batchId": 0, "inputRowsPerSecond": math.inf}).input_rows_per_s is None
