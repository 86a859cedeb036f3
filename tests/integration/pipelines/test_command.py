"""What `penstock pipeline` refuses before Spark is started, and says when there is nothing."""

import subprocess
from pathlib import Path

import pytest
from tests.support.broker import BrokerProcess
from tests.support.pipelines import command, run_command
from tests.support.processes import free_port

COPY = """
from penstock.pipelines import Topic, pipeline

@pipeline(inputs=Topic("a"), output=Topic("b"))
def copy(rows):
    return rows
"""


def refused(*words: str, state: Path) -> str:
    """What a refused command says on stderr."""
    done = subprocess.run(
        command("pipeline", *words, "--state", str(state)), capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout
    return done.stderr


def test_without_pipelines_the_list_says_so(tmp_path: Path) -> None:
    assert "No pipeline has run yet" in run_command(["list"], tmp_path)
    assert "No pipeline has run yet" in run_command(["status"], tmp_path)
    assert "No pipeline runs." in run_command(["stop", "--all"], tmp_path)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run"], "Give the Python file"),
        (["run", "nowhere.py"], "nowhere.py is not a file"),
        (["stop"], "Say which pipelines to stop"),
        (["stop", "unknown"], "No pipeline 'unknown' has run"),
        (["reset"], "Say which pipeline to reset"),
        (["list", "--once"], "--once does not go with list"),
        (["status", "--execute"], "--execute does not go with status"),
        (["dance"], "'dance' is not one of"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path
) -> None:
    said = refused(*words, state=tmp_path)
    assert sentence in said and "Traceback" not in said


def test_an_input_that_does_not_exist_is_told_before_spark_starts(
    shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    file = tmp_path / "p.py"
    file.write_text(COPY)
    said = refused("run", str(file), "--bootstrap-server", shared_broker.address, state=tmp_path)
    assert said.startswith("The pipeline copy reads the topic a, which does not exist.")
    assert not (tmp_path / "spark.log").exists()


def test_a_broker_that_does_not_answer_is_told_before_spark_starts(tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text(COPY)
    address = f"127.0.0.1:{free_port()}"
    said = refused("run", str(file), "--bootstrap-server", address, state=tmp_path)
    assert address in said and "Traceback" not in said
    assert not (tmp_path / "spark.log").exists()
