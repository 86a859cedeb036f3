"""kafka-consumer-perf-test: times and rates in Kafka's columns."""

from datetime import datetime

from penstock.cli.tools.load.consumer_perf_test import Tally, _interval_line, _total_line, formatted

FORMAT = "yyyy-MM-dd HH:mm:ss:SSS"
BEGAN = datetime(2026, 11, 5, 7, 8, 9, 12345)


def test_times_are_printed_in_javas_words() -> None:
    assert formatted(BEGAN, FORMAT) == "2026-11-05 07:08:09:012"
    assert formatted(BEGAN, "HH:mm") == "07:08"


def test_the_last_line_has_totals_and_rates() -> None:
    tally = Tally(start_s=0, interval_start_s=0, count=100_000, size=104_857_600, joined_ms=500)
    ended = BEGAN.replace(second=11)
    assert _total_line(tally, BEGAN, ended, FORMAT) == (
        "2026-11-05 07:08:09:012, 2026-11-05 07:08:11:012, 100.0000, 50.0000, 100000, "
        "50000.0000, 500, 1500, 66.6667, 66666.6667"
    )


def test_an_interval_has_rates_of_what_is_new() -> None:
    tally = Tally(
        start_s=0,
        interval_start_s=10,
        count=300,
        size=3 * 1_048_576,
        interval_count=100,
        interval_size=1_048_576,
    )
    columns = _interval_line(tally, 12, "HH").split(", ")
    assert columns[1:] == [
        "0",
        "3.0000",
        "1.0000",
        "300",
        "100.0000",
        "0",
        "2000",
        "1.0000",
        "100.0000",
    ]
