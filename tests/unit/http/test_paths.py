"""Paths as routes see them."""

import asyncio
from typing import Any

import pytest

from penstock.http.paths import WithoutFinalSlash


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ("/connectors/", "/connectors"),
        ("/connectors", "/connectors"),
        ("/", "/"),
        ("/connectors/a%2F", "/connectors/a%2F"),
        ("/connectors//", "/connectors/"),
    ],
)
def test_one_slash_at_the_end_of_a_path_means_nothing(sent: str, seen: str) -> None:
    found: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.append(scope["raw_path"].decode())

    decoded = sent.replace("%2F", "/")
    scope = {"type": "http", "path": decoded, "raw_path": sent.encode()}
    asyncio.run(WithoutFinalSlash(app)(scope, None, None))  # type: ignore[arg-type]
    assert found == [seen]
