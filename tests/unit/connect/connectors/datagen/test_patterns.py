"""Texts made of regular expressions are matched by them."""

import random
import re

import pytest

from penstock.connect.connectors.datagen.patterns import text_maker
from penstock.errors import ConfigError

PATTERNS = (
    "User_[1-9]",
    "1(11|22)\\.\\d{2,3}\\.[a-f0-9_-]+",
    "(ABC123|LMN456)?x*y{3}",
    "\\w{2,}\\s.(?:a|b|)",
    "[\\d.]{4}",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_made_matches(pattern: str) -> None:
    make, chance = text_maker(pattern), random.Random(7)
    made = {make(chance) for _ in range(200)}
    assert all(re.fullmatch(pattern, one) for one in made)
    assert len(made) > 1


@pytest.mark.parametrize(
    "pattern",
    [
        "(a",
        "a)",
        "[a",
        "[]",
        "[^a]",
        "*a",
        "a{",
        "a{x}",
        "a{3,1}",
        "\\",
        "\\q",
        "[z-a]",
        "(?=a)",
        "(" * 60 + ")" * 60,
        "a{99999}",
    ],
)
def test_what_is_not_known_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        text_maker(pattern)
