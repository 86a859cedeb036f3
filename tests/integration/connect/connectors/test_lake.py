"""The lake sink as a process that is killed between its steps: each row is in the table once."""

import random
import subprocess
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.support.connect_tasks import sink_record, started_sink
from tests.support.processes import ROOT, python

from penstock.connect.connectors.lake.sink import LakeSinkTask
from penstock.connect.values.schema import INT64_SCHEMA, struct_schema
from penstock.connect.values.struct import StructValue
from penstock.records.topic_partition import TopicPartition

AT = TopicPartition("t", 0)
ROW = struct_schema({"n": INT64_SCHEMA})
END, STEP = 600, 25


def write(path: str) -> None:
    """A task on its own, which tells of each step."""
    task = LakeSinkTask()
    rig = started_sink(task, {"name": "lake", "lake.path": path}, [AT])
    at = rig.sought.get(AT, 0)
    while at < END:
        task.put([sink_record(StructValue(ROW, (n,)), n, schema=ROW) for n in range(at, at + STEP)])
        print("put", flush=True)
        at += STEP
        task.pre_commit({AT: at})
        print("committed", flush=True)


def run_for(path: Path, steps: int | None) -> None:
    """Start it and kill it after so many steps, or a moment later; None: let it end."""
    code = f"from {__name__} import write; write({str(path)!r})"
    words = [python(), "-c", code]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(steps if steps is not None else 2 * END):
            if not child.stdout.readline():
                break
        if steps is not None:
            child.kill()
    assert steps is not None or child.returncode == 0


def kill_rounds(path: Path, rounds: int) -> None:
    dice = random.Random(5)
    for _ in range(rounds):
        run_for(path, dice.randrange(1, 8))
    run_for(path, None)
    found = DeltaTable(str(path)).to_pyarrow_table().column("n").to_pylist()
    assert sorted(found) == list(range(END))


def test_each_row_is_there_once_though_the_task_is_killed(tmp_path: Path) -> None:
    kill_rounds(tmp_path, 3)


@pytest.mark.long
def test_each_row_is_there_once_after_fifty_kills(tmp_path: Path) -> None:
    kill_rounds(tmp_path, 50)
