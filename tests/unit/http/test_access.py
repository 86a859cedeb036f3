"""The settings of doors: listeners, key stores, passwords."""

import pytest

from penstock.errors import ConfigError
from penstock.http.access import (
    ACCESS_DEFAULTS,
    BearerSettings,
    HttpListener,
    read_access,
    read_basic,
    read_listeners,
    read_tls,
)


def test_listeners_are_http_or_https() -> None:
    assert read_listeners("http://127.0.0.1:1, HTTPS://[::1]:2") == (
        HttpListener("http", "127.0.0.1", 1),
        HttpListener("https", "::1", 2),
    )


@pytest.mark.parametrize("text", ["", " , ", "ftp://a:1", "127.0.0.1:80", "http://a"])
def test_what_is_no_listener_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="http://host:port or https://host:port"):
        read_listeners(text)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"ssl.client.authentication": "REQUIRED"}, "required"),
        ({"ssl.client.auth": "true"}, "required"),
        ({"ssl.client.auth": "false"}, "none"),
    ],
)
def test_client_certificates_are_asked_for_in_both_of_the_known_ways(
    given: dict[str, str], wanted: str
) -> None:
    tls = read_tls(given)
    assert tls is not None
    assert tls.client_auth == wanted


def test_nothing_said_about_tls_is_none() -> None:
    assert read_tls({"listeners": "http://a:1", "ssl.key.password": ""}) is None


def test_basic_is_read_where_it_is_asked_for() -> None:
    assert read_basic(ACCESS_DEFAULTS, "realm") is None
    given = {
        **ACCESS_DEFAULTS,
        "authentication.method": "basic",
        "authentication.users.file": "users",
        "authentication.roles": "a, b",
    }
    found = read_basic(given, "realm")
    assert found is not None
    assert (found.realm, found.roles, found.open_paths) == ("realm", ("a", "b"), ())


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("authentication.method", "DIGEST", "none of NONE, BASIC and BEARER"),
        ("authentication.users.file", "", "is missing"),
    ],
)
def test_what_nobody_could_pass_is_refused(name: str, value: str, reason: str) -> None:
    given = {
        **ACCESS_DEFAULTS,
        "authentication.method": "BASIC",
        "authentication.users.file": "users",
        name: value,
    }
    with pytest.raises(ConfigError, match=reason):
        read_basic(given, "realm")


@pytest.mark.parametrize("method", ["BEARER", "OAuthBearer"])
def test_bearer_tokens_are_read_where_they_are_asked_for(method: str) -> None:
    given = {
        **ACCESS_DEFAULTS,
        "authentication.method": method,
        "oauthbearer.jwks.endpoint.url": "file:/keys",
        "oauthbearer.expected.audience": "a, b",
        "oauthbearer.expected.issuer": "us",
    }
    found = read_access(given, "realm")
    assert isinstance(found, BearerSettings)
    assert (found.keys_url, found.realm) == ("file:/keys", "realm")
    assert (found.rules.audiences, found.rules.issuer) == ({"a", "b"}, "us")
    with pytest.raises(ConfigError, match=r"oauthbearer\.jwks\.endpoint\.url is missing"):
        read_access({**given, "oauthbearer.jwks.endpoint.url": ""}, "realm")
    with pytest.raises(ConfigError, match="is no number"):
        read_access({**given, "oauthbearer.clock.skew.seconds": "soon"}, "realm")
