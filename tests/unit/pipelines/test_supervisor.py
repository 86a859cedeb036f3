"""What a supervisor tells before Spark is there: that it starts."""

import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.tools.pipelines import pipeline as tool
from penstock.pipelines import Topic, pipeline
from penstock.pipelines.state import StateDir
from penstock.pipelines.supervisor import Order, Supervisor
from penstock.queries.engine import Engine, EngineFailed


@pipeline(inputs=Topic("in", value="a LONG"), output=Topic("out"))
def copied(rows: Any) -> Any:
    return rows


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    """One that needs no broker."""
    where = "penstock.pipelines.supervisor"
    monkeypatch.setattr("penstock.client.wire.raw_cluster.cluster_for", lambda _: nullcontext())
    monkeypatch.setattr(f"{where}.create_missing", lambda *_: [])
    monkeypatch.setattr(f"{where}.LagReader.close", lambda _: None)
    order = Order(
        pipelines=[copied],
        files={},
        state=StateDir(tmp_path),
        settings={"bootstrap.servers": "localhost:1"},
    )
    return Supervisor(order, lambda _: None)


@pytest.mark.parametrize("action", ["status", "list"])
def test_status_and_list_say_that_spark_starts(
    action: str,
    supervisor: Supervisor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said: list[str] = []

    def start(*_: object, **__: object) -> Engine:
        assert tool.main([action, "--state", str(tmp_path)]) == 0
        said.append(capsys.readouterr().out)
        raise EngineFailed("that is enough")

    monkeypatch.setattr(Engine, "start", start)
    with pytest.raises(EngineFailed):
        supervisor.run(threading.Event())
    assert "copied" in said[0] and "starting Spark" in said[0]
