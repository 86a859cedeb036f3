"""Which web pages may ask us."""

import pytest

from penstock.http.origins import is_own_page


@pytest.mark.parametrize(
    ("origin", "host", "advertised", "own"),
    [
        (None, "localhost:8082", "", True),
        ("http://localhost:8082", "localhost:8082", "", True),
        ("http://localhost:8080", "localhost:8082", "", False),
        ("http://elsewhere.example", "localhost:8082", "", False),
        ("null", "localhost:8082", "", False),
        ("http://localhost:8082", None, "", False),
        ("https://kafka.example", "10.0.0.1:8082", "https://kafka.example", True),
        ("", "localhost:8082", "", False),
    ],
)
def test_only_our_own(origin: str | None, host: str | None, advertised: str, own: bool) -> None:
    assert is_own_page(origin, host, advertised) is own
