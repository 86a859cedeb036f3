"""The front door: every tool is found under its names, every error is one sentence."""

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.cli import main as front
from penstock.cli.main import TOOLS, main, run, tool_named
from penstock.errors import CommandError, TopicExists


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_tells_its_options(tool: Any, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = run(tool, ["--help"])
    except SystemExit as end:
        code = int(str(end.code))
    assert code == 0
    assert len(capsys.readouterr().out.splitlines()) > 2


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("topics", "topics"),
        ("kafka-topics", "topics"),
        ("kafka-topics.sh", "topics"),
        ("kafka-server-start", "server"),
        ("kafka-log-dir", "log-dirs"),
        ("kafka-log-dirs.sh", "log-dirs"),
    ],
)
def test_a_tool_has_many_names(name: str, tool: str) -> None:
    found = tool_named(name)
    assert found is not None
    assert found.name == tool


def test_an_unknown_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zork"]) == 1
    assert "no command 'zork'" in capsys.readouterr().err


def test_without_a_command_the_list_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1
    assert "console-producer" in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert "console-producer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("raised", "code", "text"),
    [
        (CommandError("It cannot be."), 1, "It cannot be.\n"),
        (TopicExists("There is one."), 1, "There is one.\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_a_tool_raises_becomes_a_sentence_and_a_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    code: int,
    text: str,
) -> None:
    def fail(_: Any) -> int:
        raise raised

    monkeypatch.setattr(front, "import_module", lambda _: SimpleNamespace(main=fail))
    assert main([TOOLS[0].name]) == code
    assert capsys.readouterr().err == text


def test_a_kafka_command_knows_itself_by_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/kafka-topics.sh", "--help"])
    with pytest.raises(SystemExit):
        front.kafka_tool()
    assert "create, delete, describe, or change a topic" in capsys.readouterr().out


def test_the_broker_starts_without_the_clients() -> None:
    """A broker must be up in a blink; librdkafka alone takes longer to load."""
    code = (
        "import sys; from penstock.cli.main import main; main(['--help']);"
        "import penstock.cli.tools.servers.server;"
        "print([m for m in sys.modules if 'confluent' in m or m.startswith('penstock.client')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_goes_away_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "penstock.cli.main", "--help"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
