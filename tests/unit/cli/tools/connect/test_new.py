"""`penstock connect new`."""

from pathlib import Path

import pytest

from penstock.cli.tools.connect.connect import main


def test_it_writes_a_project_and_says_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "gauge", "--directory", str(tmp_path)]) == 0
    assert (tmp_path / "gauge" / "src" / "gauge" / "sink.py").is_file()
    assert "pip install -e '.[test]'; pytest" in capsys.readouterr().out
