"""Secrets put into settings, and kept out of everything that prints."""

from pathlib import Path

import pytest

from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.providers.resolving import ConfigProviders, unresolved
from penstock.errors import ConfigError

KAFKAS = "org.apache.kafka.common.config.provider"


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    (tmp_path / "secrets.properties").write_text("user=ann\npassword=hunter2\n")
    (tmp_path / "token").write_text("t0ken")
    monkeypatch.setenv("CONNECT_SECRET", "from-env")
    monkeypatch.setenv("OTHER_SECRET", "hidden-one")
    return {
        "config.providers": "file, dir, env",
        "config.providers.file.class": f"{KAFKAS}.FileConfigProvider",
        "config.providers.file.param.allowed.paths": str(tmp_path),
        "config.providers.dir.class": "DirectoryConfigProvider",
        "config.providers.env.class": f"{KAFKAS}.EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "CONNECT_.*",
    }


def test_each_provider_puts_its_secrets_in(worker: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "secrets.properties"
    given = {
        "url": f"db://${{file:{file}:user}}:${{file:{file}:password}}@host",
        "token": f"${{dir:{tmp_path}:token}}",
        "env": "${env:CONNECT_SECRET}",
        "plain": "as it is",
    }
    found = ConfigProviders.of(worker).resolved(given)
    assert found == {
        "url": "db://ann:hunter2@host",
        "token": "t0ken",
        "env": "from-env",
        "plain": "as it is",
    }
    assert "hunter2" not in repr(found)
    assert unresolved(found) == []


def test_what_names_nothing_stays_and_is_told(worker: dict[str, str], tmp_path: Path) -> None:
    given = {
        "a": "${vault:x:y}",
        "b": f"${{file:{tmp_path}/secrets.properties:none}}",
        "c": "${env:OTHER_SECRET}",
    }
    found = ConfigProviders.of(worker).resolved(given)
    assert found == given
    assert unresolved(found) == ["a", "b", "c"]


def test_what_was_put_in_is_not_looked_at_again(worker: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "loop.properties").write_text("a=${env:CONNECT_SECRET}\n")
    found = ConfigProviders.of(worker).resolved({"x": f"${{file:{tmp_path}/loop.properties:a}}"})
    assert found == {"x": "${env:CONNECT_SECRET}"}


def test_a_path_outside_the_allowed_ones_is_refused(worker: dict[str, str], tmp_path: Path) -> None:
    providers = ConfigProviders.of(worker)
    for path in ("/etc/hostname", f"{tmp_path}/../other"):
        with pytest.raises(ConfigError, match="not permitted"):
            providers.resolved({"x": f"${{file:{path}:a}}"})


def test_a_file_that_is_not_there_is_named(worker: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        ConfigProviders.of(worker).resolved({"x": f"${{file:{tmp_path}/none:a}}"})


def test_an_error_about_a_secret_does_not_show_it(worker: dict[str, str]) -> None:
    entry = ConfigEntry("port", ConfigType.INT, NO_DEFAULT, Importance.HIGH, "A port.")
    found = ConfigProviders.of(worker).resolved({"port": "${env:CONNECT_SECRET}"})
    with pytest.raises(ConfigError) as raised:
        ConfigDef(entry).parse(found)
    assert "from-env" not in str(raised.value)
    assert "[hidden]" in str(raised.value)


def test_a_provider_without_a_class_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"config\.providers\.x\.class is missing"):
        ConfigProviders.of({"config.providers": "x"})


def test_a_file_that_cannot_be_parsed_is_not_quoted(worker: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bad.properties").write_text("password=\\uzzzz-s3cret\n")
    with pytest.raises(ConfigError) as raised:
        ConfigProviders.of(worker).resolved({"x": f"${{file:{tmp_path}/bad.properties:a}}"})
    assert "s3cret" not in str(raised.value)
    assert raised.value.__suppress_context__
