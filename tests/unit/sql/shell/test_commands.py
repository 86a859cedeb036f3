"""Words of the shell, and statements that only look like them."""

import pytest

from penstock.sql.shell.commands import ShellCommand, command_of, help_text


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("exit", ShellCommand("EXIT", "")),
        ("QUIT;", ShellCommand("EXIT", "")),
        ("help create  stream", ShellCommand("HELP", "create  stream")),
        ("output JSON ;", ShellCommand("OUTPUT", "JSON")),
        ("spool 'a file'", ShellCommand("SPOOL", "'a file'")),
        ("SELECT 1;", None),
        ("exit now", None),
        ("", None),
    ],
)
def test_a_line_is_a_command_or_begins_a_statement(line: str, command: ShellCommand | None) -> None:
    assert command_of(line) == command


def test_help_knows_statements() -> None:
    assert help_text("create stream").startswith("CREATE [OR REPLACE]")
    assert "EMIT CHANGES" in help_text("SELECT;")
    assert help_text("dance").startswith("There is no help on 'dance'")
    assert "semicolon" in help_text("")
