"""The report lines of the perf tests, to the letter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.perf_report import LatencyReport, percentiles


def test_an_interval_line_comes_when_the_interval_is_over() -> None:
    report = LatencyReport(5000, now_s=100.0)
    report.add([0.001, 0.003] * 500, 1048)
    assert report.window_line(104.9) is None
    assert report.window_line(105.0) == (
        "1000 records sent, 200.0 records/sec (0.20 MB/sec), 2.0 ms avg latency, "
        "3.0 ms max latency."
    )
    assert report.window_line(110.0) == (
        "0 records sent, 0.0 records/sec (0.00 MB/sec), 0.0 ms avg latency, 0.0 ms max latency."
    )


def test_the_last_line_has_percentiles() -> None:
    report = LatencyReport(5000, now_s=0.0)
    report.add([number / 1000 for number in range(1, 1001)], 1_048_576)
    assert report.total_line(10.0) == (
        "1000 records sent, 100.000000 records/sec (100.00 MB/sec), 500.50 ms avg latency, "
        "1000.00 ms max latency, 501 ms 50th, 951 ms 95th, 991 ms 99th, 1000 ms 99.9th."
    )


def test_nothing_sent_is_no_error() -> None:
    assert LatencyReport(5000, now_s=0.0).total_line(1.0).startswith("0 records sent, 0.000000")


def test_samples_stay_bounded_and_even() -> None:
    report = LatencyReport(5000, now_s=0.0)
    for number in range(200):
        report.add([number / 1000] * 10_000, 1)
    assert report.count == 2_000_000
    assert len(report._samples_s) <= 500_000
    assert percentiles(report._samples_s, [50])[0] == pytest.approx(0.1, abs=0.002)


@given(st.lists(st.floats(0, 1000), min_size=1), st.floats(0, 100))
def test_a_percentile_is_one_of_the_values(values: list[float], part: float) -> None:
    (found,) = percentiles(values, [part])
    assert found in values
    assert percentiles(values, [100]) == [max(values)]
