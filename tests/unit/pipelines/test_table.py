"""What people see of pipelines."""

import pytest
from rich.console import Console

from penstock.pipelines.state import PipelineStatus
from penstock.pipelines.table import Lines, LiveTable, details_of, line_of, print_table, settled
from penstock.queries.status import QueryStatus


def query(**changes: object) -> QueryStatus:
    words: dict[str, object] = {
        "name": "copy",
        "output": "b",
        "group": "copy",
        "checkpoint": "/c",
        "state": "running",
        "batch": 4,
        "rows": 12_345,
        "input_rows_per_s": 99.6,
        "processed_rows_per_s": 2.5,
        "batch_ms": 180,
        "lag": 7,
    }
    return QueryStatus(**{**words, **changes})  # type: ignore[arg-type]


def status(*queries: QueryStatus) -> PipelineStatus:
    return PipelineStatus(
        name="copy",
        file="/p.py",
        bootstrap="h:1",
        pid=42,
        master="local[2]",
        updated_ms=0,
        queries=list(queries),
    )


def test_a_line_tells_rates_lag_and_batch_times() -> None:
    assert line_of(query()) == (
        "copy: running, 12,345 records, 100/s in, 2.5/s done, batch 4 in 180 ms, lag 7"
    )
    assert line_of(query(lag=None, restarts=2, late_rows=3)).endswith(
        "lag -, 3 too late, 2 restarts"
    )


def printed(width: int, *queries: QueryStatus) -> str:
    console = Console(width=width)
    with console.capture() as captured:
        print_table([status(*queries)], console)
    return captured.get()


def test_the_table_shows_why_a_query_waits() -> None:
    failed = query(state="waiting", failure="the value of record orders-0@17 cannot be decoded")
    text = printed(160, failed)
    assert "waiting" in text
    assert "copy: the value of record orders-0@17 cannot be decoded" in text


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_a_narrow_table_has_fewer_columns_but_whole_ones(width: int) -> None:
    long = query(name="stock_averages.table", rows=1_234_567, failure="x " * 60, state="failed")
    text = printed(width, long, query(output="some-longer-topic"))
    assert "…" not in text
    for word in ("stock_averages.table", "running", "lag", "done/s"):
        assert word in text
    assert ("restarts" in text) == (width >= 120)


def test_failures_that_are_no_longer_on_the_screen_are_printed_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    live = LiveTable()
    for number in range(9):
        live.report(f"q{number} failed: x")
    live.leave()
    said = capsys.readouterr().out
    assert "q2 failed" in said and "q3 failed" not in said


def test_details_of_a_stopped_pipeline_have_no_rates_but_its_last_failure() -> None:
    failed = query(failure="broken", failed_ms=1000)
    text = "\n".join(details_of(status(failed), running=False))
    assert "does not run" in text and "stopped" in text and "-/s in" in text and "broken" in text
    assert "runs in process 42" in details_of(status(failed), running=True)[0]


def test_a_status_of_a_dead_supervisor_is_not_shown_as_running() -> None:
    (rested,) = settled(status(query()), running=False).queries
    assert (rested.state, rested.input_rows_per_s) == ("stopped", None)
    assert settled(status(query(state="failed")), running=False).queries[0].state == "failed"


def test_lines_are_printed_only_when_something_changed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(every_s=0)
    lines.show([status(query())])
    lines.show([status(query())])
    lines.show([status(query(rows=12_346))])
    assert len(capsys.readouterr().out.splitlines()) == 2
