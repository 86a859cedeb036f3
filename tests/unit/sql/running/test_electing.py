"""Who runs the queries: whoever runs them already, else the first by address."""

import pytest

from penstock.sql.running.electing import ElectedRunner, ServerIdentity, elect_runner


def told(url: str, *, runs: bool = False) -> bytes:
    return ServerIdentity(url=url, runs_queries=runs).encode()


def test_the_first_by_address_runs_where_nobody_does() -> None:
    chosen = elect_runner({"m2": told("http://b:1"), "m1": told("http://a:1")})
    assert (chosen.member_id, chosen.url) == ("m1", "http://a:1")
    assert chosen.servers == ("http://a:1", "http://b:1")
    assert ElectedRunner.decode(chosen.encode()) == chosen


def test_whoever_runs_goes_on() -> None:
    assert elect_runner({"a": told("http://a:1"), "b": told("http://b:1", runs=True)}).url == (
        "http://b:1"
    )


def test_what_no_server_told_is_refused() -> None:
    for data in (b"no", b"[]", b"{}"):
        with pytest.raises(ValueError):
            elect_runner({"a": data})
