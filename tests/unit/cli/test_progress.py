"""Progress: shown where somebody looks, after a while, and wiped at the end."""

import io

import pytest

from penstock.cli import progress
from penstock.cli.progress import Progress


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


def run(to: io.StringIO) -> str:
    with Progress("groups", 3, to=to) as shown:
        for _ in range(3):
            shown.step()
    return to.getvalue()


def test_nothing_is_shown_for_short_work() -> None:
    assert run(Terminal()) == ""


def test_long_work_counts_on_a_terminal_and_leaves_it_clean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "_SILENT_S", 0.0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    text = run(Terminal())
    assert text.startswith("\r1 of 3 groups\r2 of 3 groups\r3 of 3 groups")
    assert text.endswith("\r             \r")


def test_a_file_gets_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SILENT_S", 0.0)
    assert run(io.StringIO()) == ""
