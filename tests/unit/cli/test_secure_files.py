"""The folder of `penstock secure init`: whole or not at all, and its owner's alone."""

import datetime
import itertools
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.security.access import access_of
from penstock.broker.security.outgoing_login import outgoing_login, outgoing_wrap, own_principal
from penstock.broker.security.zookeeper_login import zookeeper_login
from penstock.cli.secure_files import SecureFiles, make_secure_files
from penstock.client.wire.security import Security
from penstock.config.broker import BrokerConfig
from penstock.config.properties import read_properties
from penstock.errors import CommandError


def made(directory: Path, **more: Any) -> SecureFiles:
    numbers = itertools.count(1)
    given: dict[str, Any] = {
        "users": ["alice"],
        "hosts": ["localhost", "127.0.0.1"],
        "now": datetime.datetime.now(datetime.UTC),
        "days": 2,
        "new_password": lambda: f"password-{next(numbers)}",
    }
    return make_secure_files(directory, **{**given, **more})


def test_nobody_else_may_read_any_of_it(tmp_path: Path) -> None:
    files = made(tmp_path / "a" / "secure")
    assert files.directory.stat().st_mode & 0o777 == 0o700
    modes = {file.name: file.stat().st_mode & 0o777 for file in files.directory.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"ca.pem", "ca.key", "broker.pem", "zookeeper.pem", "alice.properties"} <= set(modes)
    assert [path.name for path in files.directory.parent.iterdir()] == ["secure"]


def test_a_broker_takes_the_settings(tmp_path: Path) -> None:
    files = made(tmp_path / "secure")
    settings = read_properties(files.broker_properties)
    config = BrokerConfig({**settings, "listeners": "SASL_SSL://127.0.0.1:9092"})
    assert config.warnings == ()
    assert own_principal(config) == "User:broker"
    assert outgoing_login(config) is not None
    assert outgoing_wrap(config) is not None
    assert access_of(config) is not None
    login = zookeeper_login(config)
    assert login.tls is not None
    login.tls.client_context()


def test_clients_take_theirs(tmp_path: Path) -> None:
    files = made(tmp_path / "secure")
    for file in (files.client("alice"), files.librdkafka_client("alice")):
        security = Security.from_settings(read_properties(file))
        assert security.credentials is not None and security.tls is not None
        assert (security.credentials.username, security.credentials.password) == (
            "alice",
            "password-3",
        )
        security.tls.context()
    files.refuse_missing()
    assert files.admin_security().credentials is not None
    files.zookeeper_context()


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    files = made(tmp_path / "secure")
    before = {file: file.read_bytes() for file in files.directory.iterdir()}
    with pytest.raises(CommandError, match="there already"):
        made(tmp_path / "secure")
    assert {file: file.read_bytes() for file in files.directory.iterdir()} == before
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="there already"):
        made(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    made(tmp_path / "empty").refuse_missing()


@pytest.mark.parametrize("users", [["admin"], ["a/b"], ['a"b'], [".."], ["a", "a"], ["zookeeper"]])
def test_a_user_that_cannot_be_is_refused_before_anything_is_written(
    tmp_path: Path, users: list[str]
) -> None:
    with pytest.raises(CommandError, match="--users"):
        made(tmp_path / "secure", users=users)
    with pytest.raises(CommandError, match="--hosts"):
        made(tmp_path / "secure", hosts=["a b"])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_not_made_says_how(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="penstock secure init"):
        SecureFiles(tmp_path).refuse_missing()


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="cannot be made"):
        made(tmp_path / "file" / "secure")
