"""Words, names, numbers and signs."""

from penstock.sql.language.lexer import read_tokens


def kinds(text: str) -> list[str]:
    return [token.type for token in read_tokens(text)]


def test_words_of_the_language_are_kinds_of_their_own() -> None:
    assert kinds("select a FROM Emit") == ["SELECT", "NAME", "FROM", "EMIT"]


def test_numbers_are_read_as_far_as_they_go() -> None:
    assert kinds("1 1.5 .5 5. 1e3 1.5E-3") == [
        "INTEGER", "DECIMAL", "DECIMAL", "DECIMAL", "FLOAT", "FLOAT",
    ]  # fmt: skip
    assert kinds("a.b a->b x=>y a:=1 a||b") == [
        "NAME", "DOT", "NAME", "NAME", "ARROW", "NAME", "NAME", "LAMBDA", "NAME",
        "NAME", "ASSIGN", "INTEGER", "NAME", "CONCAT", "NAME",
    ]  # fmt: skip


def test_places_count_lines_through_strings_and_comments() -> None:
    places = [(t.line, t.column) for t in read_tokens("a 'x\ny' b /* \n\n */ c -- d\ne")]
    assert places == [(1, 1), (1, 3), (2, 4), (4, 5), (5, 1)]
