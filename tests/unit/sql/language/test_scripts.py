"""Scripts are cut at semicolons, and at none that is part of something else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.language.scripts import is_complete, statement_texts, without_comments


def test_semicolons_in_quotes_and_comments_do_not_end_a_statement() -> None:
    text = "DEFINE a = 'x;y'; -- one; two\nDROP STREAM `;`; /* ; */"
    parts = [part.strip() for part in statement_texts(text)]
    assert parts[:2] == ["DEFINE a = 'x;y';", "-- one; two\nDROP STREAM `;`;"]


def test_a_statement_stays_at_its_line_and_column() -> None:
    first, second = statement_texts("DROP STREAM A;  DROP\nSTREAM B;")
    assert (first, second) == ("DROP STREAM A;", " " * 14 + "  DROP\nSTREAM B;")


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("", False),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT ';", False),
        ("SELECT ';';", True),
        ("SELECT 'it''s;';", True),
        ("SELECT `a;", False),
        ("SELECT 1; -- and then;", True),
        ("SELECT 1; /* and", False),
        ("SELECT 1 -- not yet;", False),
        ("SELECT 1; SELECT", False),
    ],
)
def test_a_prompt_knows_when_a_statement_has_ended(text: str, is_whole: bool) -> None:
    assert is_complete(text) is is_whole


def test_comments_vanish_and_texts_that_look_like_them_stay() -> None:
    assert without_comments("a -- b\nc /* d */ '-- e'") == "a  \nc   '-- e'"


@given(st.text(alphabet="a;'`\"-/*\n ", max_size=40))
def test_no_character_of_a_text_is_lost(text: str) -> None:
    parts = list(statement_texts(text))
    assert "".join("".join(parts).split()) == "".join(text.split())
