"""Secrets are found where their names point, and their values are never said."""

from pathlib import Path

import pytest

from penstock.client.librdkafka import settings_of
from penstock.client.wire.secrets import resolve_any, resolve_secrets, without_written_secrets
from penstock.errors import ConfigError


def test_a_secret_comes_from_a_file_without_its_last_line_break(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    for text, expected in [("pa ss\n", "pa ss"), ("pa\nss\r\n", "pa\nss"), ("x", "x"), ("", "")]:
        path.write_bytes(text.encode())
        assert resolve_secrets({"sasl.password": f"file:{path}"}) == {"sasl.password": expected}
    path.write_text("x\n")
    assert resolve_secrets({"sasl.password": f"file://{path}"}) == {"sasl.password": "x"}


def test_a_secret_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "from outside")
    assert resolve_secrets({"sasl.password": "env:A_SECRET"}) == {"sasl.password": "from outside"}


def test_other_values_stay_as_they_are() -> None:
    settings: dict[str, object] = {"a": "plain", "b": 7, "c": "x:file:/y", "d": None}
    assert resolve_any(settings) == settings


def test_a_setting_that_names_a_file_keeps_the_path(tmp_path: Path) -> None:
    found = resolve_secrets({"ssl.ca.location": f"file:{tmp_path}/ca.pem"})
    assert found == {"ssl.ca.location": f"{tmp_path}/ca.pem"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("file:/nowhere/at/all", "cannot read the file /nowhere/at/all .*No such file"),
        ("env:NOT_SET_ANYWHERE", "the environment variable NOT_SET_ANYWHERE .* is not set"),
    ],
)
def test_a_secret_that_is_not_there_is_one_sentence(value: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"sasl.password: {reason}"):
        resolve_secrets({"sasl.password": value})


def test_librdkafka_gets_the_secret_and_plugins_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "from outside")
    config = {"bootstrap.servers": "h:1", "sasl.password": "env:A_SECRET"}
    settings = settings_of(config, {}, "producer")
    assert settings.librdkafka["sasl.password"] == "from outside"
    assert settings.given["sasl.password"] == "env:A_SECRET"


def test_what_is_kept_has_names_of_secrets_and_no_secrets() -> None:
    named = {"sasl.password": "env:A", "ssl.key.password": "file:/run/secret", "sasl.username": "a"}
    written = {
        "sasl.jaas.config": 'Module required username="a" password="b";',
        "ssl.keystore.password": "b",
        "ssl.keystore.key": "-----BEGIN PRIVATE KEY-----",
        "basic.auth.user.info": "a:b",
    }
    assert without_written_secrets({**named, **written}) == named
