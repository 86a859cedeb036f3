"""penstock sql: what is printed, and how it ends."""

from pathlib import Path

import pytest

from penstock.cli.tools.sql.sql import main
from penstock.errors import CommandError

SCRIPT = """--@test: passes
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S WHERE A > 1;
INSERT INTO S VALUES (1, 2);
ASSERT VALUES O VALUES (1, 2);
--@test: fails
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
INSERT INTO S VALUES (1, 2);
ASSERT VALUES S VALUES (1, 3);
"""


def script(folder: Path, text: str = SCRIPT) -> str:
    file = folder / "cases.sql"
    file.write_text(text)
    return str(file)


def test_each_case_is_told_and_a_failure_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = script(tmp_path)
    assert main(["test", file]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"ok     {file}:1 passes"
    assert told[1] == f"FAILED {file}:6 fails"
    assert "A is 2 and not 3" in told[2]
    assert told[-1] == "1 passed, 1 failed"


def test_cases_are_chosen_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", script(tmp_path), "--case", "pass"]) == 0
    assert capsys.readouterr().out.endswith("1 passed, 0 failed\n")
    with pytest.raises(CommandError, match="no case to run"):
        main(["test", script(tmp_path), "--case", "nothing"])


def test_a_script_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", script(tmp_path, SCRIPT.partition("--@test: fails")[0])]) == 0
    told = capsys.readouterr().out
    assert "filter A > 1" in told
    assert "Sink: KSTREAM-SINK-" in told


def test_mistakes_are_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", script(tmp_path, "CREATE STREAM;")]) == 1
    told = capsys.readouterr().err
    assert "line 1:14" in told
    assert told.splitlines()[-1].endswith("^")
    with pytest.raises(CommandError, match="NOBODY does not exist"):
        main(["explain", script(tmp_path, "CREATE STREAM O AS SELECT * FROM NOBODY;")])
    with pytest.raises(CommandError, match="cannot be read"):
        main(["test", str(tmp_path / "missing.sql")])
