"""What a reset would remove, before it is asked for."""

from pathlib import Path

from penstock.pipelines.reset import ResetPlan, query_ids
from penstock.pipelines.state import PipelineStatus
from penstock.queries.status import QueryStatus


def test_the_ids_of_queries_are_read_from_their_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "metadata").write_text('{"id":"1f2e"}')
    queries = [
        QueryStatus(name=n, output="o", group="g", checkpoint=str(tmp_path / n), state="stopped")
        for n in ("c", "never-started")
    ]
    status = PipelineStatus(
        name="c", file="f", bootstrap="h:1", pid=1, master="local", updated_ms=0, queries=queries
    )
    assert query_ids(status) == {"1f2e"}


def test_people_see_what_goes_and_that_nothing_goes() -> None:
    plan = ResetPlan(checkpoints=[Path("/c")], groups=["g"])
    assert plan.lines() == ["  the checkpoint /c", "  the consumer group g with its offsets"]
    assert "nothing" in ResetPlan(checkpoints=[], groups=[]).lines()[0]
