"""Which media type a client gets, and which bodies are taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.http.negotiation import is_taken, media_name, negotiated

V1 = "application/vnd.schemaregistry.v1+json"
PLAIN = "application/vnd.schemaregistry+json"
JSON = "application/json"
OFFERED = [V1, PLAIN, JSON]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, V1),
        ("", V1),
        ("*/*", V1),
        ("application/*", V1),
        (JSON, JSON),
        (f"{JSON}; charset=utf-8", JSON),
        ("Application/JSON", JSON),
        (f"{JSON}, {PLAIN}", PLAIN),  # Both are liked as well: the service chooses.
        (f"{PLAIN};q=0.4, {JSON};q=0.5", JSON),
        (f"{V1};q=0, */*", PLAIN),  # The name counts before the wildcard.
        (f"application/*;q=0.1, {JSON};q=0.2", JSON),
        ("text/html, */*;q=0.1", V1),
        ("text/html", None),
        (f"{JSON};q=0", None),
        (f"{JSON};q=much", None),
        (f"{JSON};q=7", JSON),
        (",,", None),
    ],
)
def test_the_best_liked_type_that_is_offered(accept: str | None, expected: str | None) -> None:
    assert negotiated(accept, OFFERED) == expected


@given(st.text(alphabet="aplication/json*;,q=0.159 \t+v", max_size=60))
def test_whatever_a_client_accepts_it_gets_something_offered_or_nothing(accept: str) -> None:
    assert negotiated(accept, OFFERED) in (*OFFERED, None)


def test_a_body_is_taken_by_the_name_of_its_type() -> None:
    assert is_taken("application/JSON; charset=utf-8", OFFERED)
    assert is_taken(None, OFFERED)
    assert not is_taken("text/plain", OFFERED)
    assert media_name(" Text/Plain ;a=b") == "text/plain"
