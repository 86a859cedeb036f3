"""From Spark's pages to one sentence with the record in it."""

import json
from pathlib import Path

import pytest

from penstock.queries.failure import by_partition, failed_batch, failure_of, sentence_of

DECODE = """[STREAM_FAILED] Query [id = 1f, runId = 2a] terminated with exception: Job aborted \
due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in \
stage 3.0 (TID 3) (host executor driver): org.apache.spark.api.python.PythonException: Traceback \
(most recent call last):
  File "/x/pyspark/worker.py", line 1908, in main
    process()
  File "/y/decoding.py", line 107, in decoded
    raise self._error(batch, *failures[first])
penstock.schemas.errors.DecodeError: the value of record orders-0@17 cannot be decoded as JSON: \
it is not JSON: Expecting value

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(P.scala:1)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""

CAST = """[STREAM_FAILED] Query [id = 1f, runId = 2a] terminated with exception: \
[CAST_INVALID_INPUT] The value 'abc' of the type "STRING" cannot be cast to "INT" because it is \
malformed. SQLSTATE: 22018
== DataFrame ==
"cast" was called from
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.invalid(Q.scala:1)
"""


def entry(folder: Path, batch: int, offsets: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(batch)).write_text(f"v1\n{{}}\n{json.dumps(offsets)}\n")


def test_our_own_sentence_is_found_inside_python_inside_java() -> None:
    found = failure_of(DECODE)
    assert found.sentence == (
        "the value of record orders-0@17 cannot be decoded as JSON: it is not JSON: Expecting value"
    )
    assert not found.is_permanent


def test_an_error_of_sparks_own_is_its_sentence_and_its_name() -> None:
    assert sentence_of(CAST) == (
        'The value \'abc\' of the type "STRING" cannot be cast to "INT" because it is malformed.'
        " [CAST_INVALID_INPUT]"
    )


def test_an_error_that_names_no_record_gets_the_offsets_of_its_batch(tmp_path: Path) -> None:
    entry(tmp_path / "offsets", 4, {"orders": {"0": 15, "1": 7}})
    entry(tmp_path / "offsets", 5, {"orders": {"0": 17, "1": 7}})
    entry(tmp_path / "commits", 4, {})
    assert failed_batch(tmp_path)[0] == 5
    assert failure_of(CAST, tmp_path).sentence.endswith("(in batch 5: orders-0 offsets 15 to 16)")


def test_no_offsets_are_named_when_no_batch_was_under_way(tmp_path: Path) -> None:
    entry(tmp_path / "offsets", 4, {"orders": {"0": 15}})
    entry(tmp_path / "commits", 4, {})
    assert failed_batch(tmp_path) == (-1, [])
    assert "in batch" not in failure_of(CAST, tmp_path).sentence


@pytest.mark.parametrize(
    "text",
    [
        "AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `x` cannot be resolved.",
        "OptionError: Option 'subscribr' is not known to a penstock read",
    ],
)
def test_a_wrong_plan_is_not_tried_again(text: str) -> None:
    assert failure_of(text).is_permanent


def test_a_sentence_without_end_is_cut() -> None:
    assert len(sentence_of("x" * 10_000)) == 600


def test_offsets_of_other_sources_are_not_taken_for_partitions() -> None:
    assert by_partition({"logOffset": 3}) == {}
    assert by_partition([1]) == {}
    assert by_partition({"a": {"0": 5}}) == {("a", 0): 5}


def test_a_python_process_that_came_too_late_is_a_matter_of_the_moment(tmp_path: Path) -> None:
    text = "[STREAM_FAILED] terminated with exception: Python worker failed to connect back."
    failure = failure_of(text, tmp_path)
    assert failure.is_slow_start and not failure.is_permanent
    assert "too busy" in failure.sentence
    assert not failure_of("ValueError: no", tmp_path).is_slow_start
