"""LIKE against a model: the same pattern as a regular expression."""

import re

from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.expressions.like import is_like


def model(text: str, pattern: str) -> bool:
    signs = {"%": ".*", "_": "."}
    return bool(re.fullmatch("".join(signs.get(c, re.escape(c)) for c in pattern), text, re.DOTALL))


@given(st.text("ab\n", max_size=8), st.text("ab\n%_", max_size=8))
def test_a_pattern_matches_as_the_regular_expression_does(text: str, pattern: str) -> None:
    assert is_like(text, pattern) == model(text, pattern)


@given(st.text("ab%_!", max_size=8))
def test_an_escaped_text_is_like_itself_alone(text: str) -> None:
    escaped = "".join(f"!{c}" if c in "%_!" else c for c in text)
    assert is_like(text, escaped, "!")
    assert not is_like(f"{text}x", escaped, "!")


def test_many_wild_signs_take_no_longer_than_the_text() -> None:
    assert not is_like("a" * 2000 + "b", "%a" * 200 + "c")
