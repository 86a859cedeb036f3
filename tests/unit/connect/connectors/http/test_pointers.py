"""JSON pointers, as RFC 6901 has them."""

import pytest

from penstock.connect.connectors.http.pointers import MISSING, found_at, wrong_pointer

DOCUMENT = {"a/b": 1, "m~n": 2, "": 3, "list": [{"x": None}, 5]}


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", DOCUMENT),
        ("/a~1b", 1),
        ("/m~0n", 2),
        ("/", 3),
        ("/list/1", 5),
        ("/list/0/x", None),
        ("/list/2", MISSING),
        ("/list/-1", MISSING),
        ("/nothing/at/all", MISSING),
    ],
)
def test_what_a_pointer_points_to(pointer: str, found: object) -> None:
    assert found_at(DOCUMENT, pointer) is found or found_at(DOCUMENT, pointer) == found


def test_a_pointer_begins_with_a_slash() -> None:
    assert wrong_pointer("a/b") and wrong_pointer("/a") is None and wrong_pointer("") is None
