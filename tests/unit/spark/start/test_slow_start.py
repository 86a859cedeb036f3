"""A Python process that came too late is known by Spark's words, however they are wrapped."""

import pytest

from penstock.spark.start.slow_start import is_slow_start

LATE = """\
[STREAM_FAILED] Query [id = 6f, runId = 5a] terminated with exception: Python worker failed to \
connect back. SQLSTATE: XXKST
=== Streaming Query ===
Current Committed Offsets: {}
JVM stacktrace:
org.apache.spark.SparkException: Python worker failed to connect back.
\tat org.apache.spark.api.python.PythonWorkerFactory.createSimpleWorker(PythonWorkerFactory.scala:1)
Caused by: java.net.SocketTimeoutException: Timed out while waiting for the Python worker to \
connect back
"""


@pytest.mark.parametrize(
    ("text", "is_late"),
    [
        (LATE, True),
        ("java.lang.IllegalStateException: Python daemon failed to launch worker.", True),
        ("Python worker exited unexpectedly (crashed)", False),
        ("java.net.SocketTimeoutException: Read timed out", False),
    ],
)
def test_only_a_process_that_did_not_start_in_time_is_a_slow_start(
    text: str, is_late: bool
) -> None:
    assert is_slow_start(text) is is_late
