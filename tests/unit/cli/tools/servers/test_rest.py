"""`penstock rest`: its names, and what is told before it starts."""

from pathlib import Path

import pytest

from penstock.cli.main import main, tool_named


@pytest.mark.parametrize("name", ["rest", "kafka-rest-start", "kafka-rest-start.sh"])
def test_it_is_found_by_its_names(name: str) -> None:
    tool = tool_named(name)
    assert tool is not None
    assert tool.place == "servers.rest"


def test_without_brokers_it_says_which_setting_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["rest"]) == 1
    assert capsys.readouterr().err == "bootstrap.servers is missing: write host:port of a broker\n"


def test_an_override_stands_above_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kafka-rest.properties"
    file.write_text("bootstrap.servers=127.0.0.1:9\nlisteners=http://127.0.0.1:0\n")
    assert main(["rest", str(file), "--override", "listeners=ftp://here:1"]) == 1
    assert "write http://host:port or https://host:port" in capsys.readouterr().err
