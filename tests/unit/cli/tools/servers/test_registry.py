"""`penstock registry`: its names, and what is told before it starts."""

from pathlib import Path

import pytest

from penstock.cli.main import main, tool_named


@pytest.mark.parametrize("name", ["registry", "schema-registry-start", "schema-registry-start.sh"])
def test_it_is_found_by_its_names(name: str) -> None:
    tool = tool_named(name)
    assert tool is not None
    assert tool.place == "servers.registry"


def test_without_brokers_it_says_which_setting_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["registry"]) == 1
    assert capsys.readouterr().err == "kafkastore.bootstrap.servers is missing\n"


def test_an_override_stands_above_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "registry.properties"
    file.write_text("kafkastore.bootstrap.servers=127.0.0.1:9\nlisteners=http://127.0.0.1:0\n")
    assert main(["registry", str(file), "--override", "listeners=ftp://here:1"]) == 1
    assert "listeners has ftp://here:1" in capsys.readouterr().err
