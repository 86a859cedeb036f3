"""Concatenated JSON objects, cut apart whatever the pieces."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.rest.v3.splitter import JsonSplitter

NESTED = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(alphabet='a"\\{}[] \n\u00e9', max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(alphabet='k"\\{}', max_size=4), inner, max_size=3),
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(alphabet='k"\\{}', max_size=4), NESTED, max_size=4)
SPACES = st.text(alphabet=" \t\r\n", max_size=3)


def split(body: bytes, cuts: list[int], most: int = 1 << 20) -> tuple[list[bytes], str | None]:
    splitter = JsonSplitter(most)
    found: list[bytes] = []
    edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    for start, end in pairwise(edges):
        found += splitter.feed(body[start:end])
    splitter.finish()
    return found, splitter.failure


@given(
    st.lists(st.tuples(SPACES, OBJECTS, st.booleans()), max_size=5),
    st.lists(st.integers(0, 10_000), max_size=8),
)
def test_whatever_was_put_together_comes_apart(
    parts: list[tuple[str, dict[str, object], bool]], cuts: list[int]
) -> None:
    texts = [json.dumps(one, ensure_ascii=is_ascii).encode() for _, one, is_ascii in parts]
    body = b"".join(space.encode() + text for (space, _, _), text in zip(parts, texts, strict=True))
    assert split(body, cuts) == (texts, None)


def test_deep_objects_are_found_byte_by_byte() -> None:
    text = b'{"a":' * 500 + b'"}\\"{"' + b"}" * 500
    body = text + b" {} " + text
    assert split(body, list(range(len(body)))) == ([text, b"{}", text], None)


@pytest.mark.parametrize("body", [b"[1]", b'"x"', b"1 ", b"{} ,{}", b"}", b"\xff"])
def test_what_is_no_object_ends_it(body: bytes) -> None:
    found, failure = split(body, [])
    assert found == [text for text in [b"{}"] if body.startswith(b"{}")]
    assert failure is not None
    assert failure.startswith("A record begins with {, not with byte ")


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_body_that_ends_within_an_object_says_so(cut: int) -> None:
    assert split(b'{"a":"}"}'[:cut], []) == ([], "The body ends within a record.")


@pytest.mark.parametrize("cuts", [[], [3], list(range(200))])
def test_an_object_that_is_too_large_ends_it_before_it_is_kept(cuts: list[int]) -> None:
    found, failure = split(b'{}{"a":"' + b"x" * 100 + b'"}{}', cuts, most=100)
    assert found == [b"{}"]
    assert failure == "A record is larger than 100 bytes."


def test_nothing_is_kept_beyond_the_limit() -> None:
    splitter = JsonSplitter(1000)
    for _ in range(10_000):
        splitter.feed(b'{"a":')
    assert splitter.failure == "A record is larger than 1000 bytes."
    assert splitter.feed(b"{}") == []
