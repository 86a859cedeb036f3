"""Names a topic may have, names that cannot live together, ids that may be given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster.topics.names import (
    check_no_collision,
    check_topic_name,
    metric_name,
    topic_id_from,
)
from penstock.errors import InvalidTopic
from penstock.protocol.primitives import uuid_text


@pytest.mark.parametrize("name", ["a", "my-topic", "A.b_c-9", "__consumer_offsets", "x" * 249])
def test_legal_names_pass(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        (
            "/orders",
            "'/orders' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            "größe",
            "'größe' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            "a\n",
            "'a\n' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'",
        ),
    ],
)
def test_illegal_names_are_refused_in_kafkas_words(name: str, reason: str) -> None:
    with pytest.raises(InvalidTopic) as caught:
        check_topic_name(name)
    assert str(caught.value) == f"Topic name is invalid: {reason}"


@given(st.text(max_size=12))
def test_a_name_passes_exactly_if_it_is_of_legal_characters(name: str) -> None:
    legal = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    expected = name not in ("", ".", "..") and set(name) <= legal
    try:
        check_topic_name(name)
    except InvalidTopic:
        assert not expected
    else:
        assert expected


def test_names_collide_when_their_metrics_would() -> None:
    assert metric_name("a.b_c") == metric_name("a_b.c") == "a_b_c"
    check_no_collision("a_b", [])
    with pytest.raises(InvalidTopic) as caught:
        check_no_collision("a_b", ["a.b"])
    assert str(caught.value) == "Topic 'a_b' collides with existing topic: a.b"


@given(st.binary(min_size=16, max_size=16))
def test_a_topic_id_is_a_version_4_uuid_whose_text_is_no_option(random_bytes: bytes) -> None:
    topic_id = topic_id_from(random_bytes)
    if topic_id is None:
        assert random_bytes[0] >> 2 == 62
        return
    assert topic_id[6] >> 4 == 4
    assert topic_id[8] >> 6 == 2
    assert not uuid_text(topic_id).startswith("-")
    kept = [topic_id[n] == random_bytes[n] for n in range(16) if n not in (6, 8)]
    assert all(kept)


def test_no_topic_gets_an_id_with_a_meaning_of_its_own() -> None:
    for reserved in (0, 1):
        assert topic_id_from(reserved.to_bytes(16, "big")) not in (
            bytes(16),
            (1).to_bytes(16, "big"),
        )
