"""penstock up: what it prints, and what it refuses before anything starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.cli.tools.platform.supervising import up_lines
from penstock.platform.state import DoorState, ProcessIdentity, ProcessState, TreeState


def test_every_address_has_its_line() -> None:
    us = ProcessIdentity(pid=7, born=1)
    doors = (
        DoorState(service="registry", address="http://127.0.0.1:8081"),
        DoorState(service="rest", address="http://127.0.0.1:18082"),
    )
    process = ProcessState(
        name="services", identity=us, started_ms=0, restarts=0, log="", last_end=None, doors=doors
    )
    state = TreeState(supervisor=us, started_ms=0, is_up=True, processes=(process,))
    assert list(up_lines(state, took_s=0.84)) == [
        "registry  http://127.0.0.1:8081   process 7",
        "rest      http://127.0.0.1:18082  process 7",
        "Everything answers after 0.8 s.",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--override", "services=brokre"], "services has brokre: write some of"),
        (["--override", "num.partitions=0"], "num.partitions"),
        (["--override", "nothing"], "is not of the form key=value"),
        (["nowhere.properties"], "cannot read the properties file nowhere.properties"),
    ],
)
def test_a_mistake_is_one_sentence_and_starts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert main(["up", *words, "--dir", str(tmp_path / "up")]) == 1
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    assert not (tmp_path / "up").exists()


@pytest.mark.parametrize(
    "program",
    [
        "from penstock.cli.main import main; main(['--help'])",
        "import penstock.cli.tools.platform.up, penstock.platform.tree",
        "import penstock.cli.tools.platform.status, penstock.platform.looking",
    ],
)
def test_neither_help_nor_the_supervisor_loads_what_only_a_service_needs(program: str) -> None:
    heavy = "{'starlette', 'uvicorn', 'confluent_kafka', 'asyncio', 'rich', 'pyspark'}"
    check = f"import sys; {program}; sys.exit(', '.join({heavy} & sys.modules.keys()) or 0)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
