"""The commands as a user runs them: real processes against a real broker."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.broker import BrokerProcess
from tests.support.processes import ROOT, python

TIMEOUT_S = 120


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def command(tool: str, *words: object) -> list[str]:
    """The command line of a tool."""
    return [python(), "-m", "penstock.cli.main", tool, *(str(word) for word in words)]


def run(tool: str, *words: object, stdin: str = "", cwd: Path = ROOT) -> Done:
    """Run a tool to its end."""
    done = subprocess.run(
        command(tool, *words),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=cwd,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


Tool = Callable[..., Done]


@pytest.fixture
def tool(shared_broker: BrokerProcess) -> Tool:
    """Runs tools against the module's broker; they must succeed unless `code` says otherwise."""

    def run_tool(name: str, *words: object, stdin: str = "", code: int = 0) -> Done:
        done = run(name, "--bootstrap-server", shared_broker.address, *words, stdin=stdin)
        assert done.code == code, f"{name} {words}: {done}"
        return done

    return run_tool


def start(words: Sequence[str], **more: object) -> subprocess.Popen[str]:
    """Start a command that goes on until it is told to stop."""
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        list(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, **more
    )
