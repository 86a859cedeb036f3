"""What the command refuses, in one sentence each."""

from pathlib import Path

import pytest

from penstock.cli.main import main, tool_named


def test_the_commands_have_kafkas_names() -> None:
    names = {name: tool_named(name) for name in ("connect-mirror-maker.sh", "kafka-mirror-maker")}
    assert [tool.name for tool in names.values() if tool] == ["mirror", "mirror-maker"]


def test_a_file_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["mirror", "--status"])
    assert ended.value.code == 1
    assert "Give the file of the mirror" in capsys.readouterr().err


def test_mistakes_of_the_file_are_told_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = A, B\nA->B.enabled = maybe\n")
    assert main(["mirror", str(file)]) == 1
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3 and told[0] == "A->B.enabled=maybe is neither true nor false."


def test_a_file_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mirror", str(tmp_path / "none")]) == 1
    assert "cannot read the properties file" in capsys.readouterr().err
