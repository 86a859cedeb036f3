"""HTTP Basic: who comes in, who does not, and a file of users that says what is wrong with it."""

import base64
import hashlib
from pathlib import Path

import pytest
from starlette.requests import Request

from penstock.errors import ConfigError
from penstock.http.basic_auth import BasicAuth, Forbidden, Unauthorized, read_users


def asked(path: str = "/subjects", authorization: str | None = None) -> Request:
    headers = [] if authorization is None else [(b"authorization", authorization.encode("latin-1"))]
    return Request({"type": "http", "method": "GET", "path": path, "headers": headers})


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.fixture
def users(tmp_path: Path) -> Path:
    digest = hashlib.md5(b"geheim", usedforsecurity=False).hexdigest()
    file = tmp_path / "users.properties"
    file.write_text(f"alice: a:b ö,admin,user\nbob=MD5:{digest}\n", encoding="utf-8")
    return file


def test_users_come_in_with_their_passwords(users: Path) -> None:
    guard = BasicAuth(read_users(users), realm="R")
    guard(asked(authorization=basic("alice:a:b ö")))
    guard(asked(authorization=basic("bob:geheim").replace("Basic", "basic")))


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Basic",
        "Basic %%%",
        "Bearer token",
        basic("alice"),
        basic("alice:"),
        basic("alice:a:b"),
        basic("bob:MD5:x"),
        basic("nobody:nobody"),
        "Basic " + base64.b64encode(b"\xff\xfe:x").decode(),
    ],
)
def test_others_are_asked_who_they_are(users: Path, authorization: str | None) -> None:
    guard = BasicAuth(read_users(users), realm='the "R"')
    with pytest.raises(Unauthorized) as refused:
        guard(asked(authorization=authorization))
    assert refused.value.answer_status == 401
    assert refused.value.headers["www-authenticate"] == 'Basic realm="the \\"R\\""'


def test_a_role_may_be_asked_for(users: Path) -> None:
    guard = BasicAuth(read_users(users), realm="R", roles=["admin", "developer"])
    guard(asked(authorization=basic("alice:a:b ö")))
    with pytest.raises(Forbidden, match="User bob"):
        guard(asked(authorization=basic("bob:geheim")))


def test_some_paths_are_open(users: Path) -> None:
    guard = BasicAuth(read_users(users), realm="R", open_paths=["/open"])
    for path in ("/-/ready", "/-/health", "/open"):
        guard(asked(path))
    with pytest.raises(Unauthorized):
        guard(asked("/open/more"))


@pytest.mark.parametrize(("text", "why"), [("", "has no users"), ("alice:", "no password for ali")])
def test_a_file_that_lets_nobody_in_is_told(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "users"
    file.write_text(text)
    with pytest.raises(ConfigError, match=why):
        read_users(file)


def test_passwords_are_not_printed(users: Path) -> None:
    assert "a:b" not in repr(read_users(users))
