"""Topics by pattern, as `--topic` and `--include` are read."""

import pytest

from penstock.cli.topic_filter import topic_pattern
from penstock.errors import CommandError


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("my-topic", "my-topic", True),
        ("my-topic", "my-topic-2", False),
        ("my.*", "my-topic", True),
        ("a,b", "b", True),
        ("a,b", "ab", False),
        ("'a|b'", "a", True),
        ("a, b", "b", True),
    ],
)
def test_the_whole_name_must_match(pattern: str, name: str, matches: bool) -> None:
    assert bool(topic_pattern(pattern).match(name)) is matches


def test_a_broken_pattern_is_told() -> None:
    with pytest.raises(CommandError, match="is an invalid regex"):
        topic_pattern("a(")
