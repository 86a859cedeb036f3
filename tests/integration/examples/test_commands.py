"""The commands that the examples tell one to type: each works, and prints nothing but its work."""

import ast
import shlex
import subprocess

import pytest
from tests.support.broker import BrokerProcess
from tests.support.processes import ROOT, python

EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


def told_producers() -> list[list[str]]:
    """Of each example the commands that send its samples."""
    texts = [ast.get_docstring(ast.parse(path.read_text())) or "" for path in EXAMPLES]
    lines = "\n".join(texts).replace("\\\n", " ").splitlines()
    told = (line for line in lines if line.strip().startswith("penstock console-producer "))
    return [shlex.split(line) for line in told]


@pytest.mark.parametrize("words", told_producers(), ids=lambda words: words[-1])
def test_a_sample_is_sent_by_the_command_that_is_told(
    shared_broker: BrokerProcess, words: list[str]
) -> None:
    *command, arrow, sample = [
        shared_broker.address if word == "localhost:9092" else word for word in words[1:]
    ]
    assert arrow == "<"
    done = subprocess.run(
        [python(), "-m", "penstock.cli.main", *command],
        input=(ROOT / sample).read_text(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_example_tells_how_to_send_its_samples() -> None:
    sent = {words[-1] for words in told_producers()}
    samples = (ROOT / "examples" / "samples").iterdir()
    assert sent == {f"examples/samples/{path.name}" for path in samples}
