"""Addresses, and who asks there."""

import pytest

from penstock.errors import ConfigError
from penstock.sql.client.service_http import ServiceHttp


def test_an_address_may_name_a_user() -> None:
    http = ServiceHttp.of("https://ann:se%20cret@sql.example/below/")
    assert (http.host, http.port, http.path) == ("sql.example", 443, "/below")
    assert http.authorization == "Basic YW5uOnNlIGNyZXQ="
    assert http.url == "https://sql.example:443/below"
    assert "YW5u" not in repr(http)


def test_a_pair_is_a_user_and_a_text_a_token() -> None:
    assert ServiceHttp.of("http://h", auth=("a", "b")).authorization == "Basic YTpi"
    assert ServiceHttp.of("http://h", auth="t").authorization == "Bearer t"
    assert ServiceHttp.of("http://[::1]:8088").url == "http://[::1]:8088"


@pytest.mark.parametrize("url", ["localhost:8088", "ftp://h", "http://", "http://h:no", ""])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is no address of a SQL service"):
        ServiceHttp.of(url)
