"""Requests that go on to another worker, and how far."""

import pytest

from penstock.connect.rest.forwarding import forwarded_query


@pytest.mark.parametrize(
    ("query", "passed_on"),
    [
        ("", "forward=true"),
        ("includeTasks=true", "includeTasks=true&forward=true"),
        ("forward=true&x=", "x=&forward=false"),
        ("forward=false", None),
        ("x=1&forward=no", None),
    ],
)
def test_a_request_is_passed_on_twice_at_most(query: str, passed_on: str | None) -> None:
    assert forwarded_query(query) == passed_on
