"""penstock secure init: what it is told, and what it tells."""

from pathlib import Path

import pytest

from penstock.cli.tools.security import secure
from penstock.errors import CommandError


def test_it_tells_what_is_where_and_no_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "secure")
    assert secure.main(["init", folder, "--users", "alice, bob", "--hosts", "b.example.org"]) == 0
    shown = capsys.readouterr().out
    assert f"penstock cluster up --secure {folder}" in shown
    assert "bob.properties" in shown
    for file in ("alice", "bob", "admin"):
        text = (tmp_path / "secure" / f"{file}.librdkafka.properties").read_text()
        password = text.partition("sasl.password=")[2].split()[0]
        assert len(password) >= 20
        assert password not in shown
    with pytest.raises(CommandError, match="there already"):
        secure.main(["init", folder])


@pytest.mark.parametrize("words", [["make"], ["init", "x", "--days", "0"], ["init", "a", "b"], []])
def test_what_it_does_not_know_ends_it(words: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        secure.main(words)
    assert end.value.code == 1
