"""Text to statements: every kind is read and read back, and errors point at the word."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.language import expressions as x
from penstock.sql.language.parse import DEPTH_MAX, STATEMENT_TOKENS_MAX, parse, parse_one
from penstock.sql.language.place import Place, SqlSyntaxError
from penstock.sql.language.queries import Duration, Select, Selected, Tumbling
from penstock.sql.language.statements import (
    ColumnElement,
    CreateAs,
    CreateSource,
    InsertRow,
    PrintTopic,
)
from penstock.sql.language.types import ArrayType, MapType, NamedType, StructType
from penstock.sql.language.words import SOFT

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "sql"
STATEMENTS = (GOLDEN / "statements.sql").read_text()


@pytest.mark.parametrize("statement", parse(STATEMENTS), ids=lambda s: type(s).__name__)
def test_a_statement_that_is_written_is_read_back(statement: object) -> None:
    assert parse_one(str(statement)) == statement
    assert parse_one(f"{statement};") == statement


def test_columns_have_types_and_roles() -> None:
    made = parse_one(
        "CREATE STREAM s (id INT KEY, a ARRAY<MAP<STRING, STRUCT<`x` INT>>>) WITH (n=-1)"
    )
    nested = ArrayType(MapType(NamedType("STRING"), StructType((("x", NamedType("INT")),))))
    assert made == CreateSource(
        kind="STREAM",
        name="S",
        columns=(ColumnElement("ID", NamedType("INT"), "KEY"), ColumnElement("A", nested)),
        properties={"N": x.Literal(-1)},
    )


@pytest.mark.parametrize(
    ("written", "topic"),
    [("Clicks", "Clicks"), ("'Clicks'", "Clicks"), ("`a-B`", "a-B"), ("Topics", "Topics")],
)
def test_a_topic_that_is_printed_keeps_its_case(written: str, topic: str) -> None:
    assert parse_one(f"PRINT {written} FROM BEGINNING") == PrintTopic(
        topic=topic, is_from_beginning=True
    )


def test_a_query_has_its_clauses() -> None:
    made = parse_one(
        "CREATE TABLE c AS SELECT k, COUNT(*) n FROM s WINDOW TUMBLING (SIZE 10 SECONDS)"
        " WHERE a > 1 GROUP BY k EMIT FINAL LIMIT 3"
    )
    assert isinstance(made, CreateAs)
    query = made.query
    assert query.items[1] == Selected(x.FunctionCall("COUNT", (x.Star(),)), "N")
    assert query.window == Tumbling(Duration(10, "SECOND"))
    assert query.where == x.Binary(">", x.ColumnName("A"), x.Literal(1))
    assert (query.group_by, query.emit, query.limit) == ((x.ColumnName("K"),), "FINAL", 3)


def test_operators_bind_as_everywhere() -> None:
    query = parse_one("SELECT a + b * c - d, NOT a = 1 AND b OR c FROM s")
    assert isinstance(query, Select)
    assert [str(item) for item in query.items] == [
        "(A + (B * C)) - D",
        "((NOT (A = 1)) AND B) OR C",
    ]


def test_numbers_are_of_three_kinds() -> None:
    row = parse_one("INSERT INTO s VALUES (1, 1.0, 1E0)")
    assert isinstance(row, InsertRow)
    assert [type(v.value) for v in row.values if isinstance(v, x.Literal)] == [int, Decimal, float]
    assert len(set(row.values)) == 3


@pytest.mark.parametrize("word", sorted(SOFT))
def test_words_that_are_not_reserved_are_names(word: str) -> None:
    made = parse_one(f"SELECT {word}, s.{word} AS {word} FROM {word} AS {word}")
    assert isinstance(made, Select)
    assert made.items[0] == Selected(x.ColumnName(word))
    assert (made.source.name, made.source.alias) == (word, word)


@pytest.mark.parametrize(
    ("text", "line", "column", "told"),
    [
        ("SELECT * FROM", 1, 14, "ends too early: expected a name"),
        ("SELECT a\n  b c FROM s", 2, 5, "'c' does not fit here: expected , or FROM"),
        ("CREATE STREAM s (a)", 1, 19, "expected a name"),
        ("SELECT * FROM (SELECT 1 FROM x)", 1, 15, "expected a name"),
        ("SELECT a FROM s WHERE x IN ()", 1, 29, "')' does not fit"),
        ("SELECT 'abc", 1, 8, "a string that begins here does not end"),
        ("SELECT 1a FROM s", 1, 8, "begins with a digit"),
        ("SELECT a FROM s EMIT", 1, 21, "expected CHANGES or FINAL"),
        ("SELECT a FROM s LIMIT x", 1, 23, "expected a whole number"),
        ("SELECT 9223372036854775808 FROM s", 1, 8, "too large for a BIGINT"),
        ("SELECT 1E999 FROM s", 1, 8, "too large for a DOUBLE"),
        ("SELECT F(a.b => 1) FROM s", 1, 10, "the names of the lambda's parameters"),
        ("SELECT a LIKE 'x' ESCAPE 'yy' FROM s", 1, 19, "ESCAPE takes one character"),
        ("CREATE STREAM s WITH (a='b', A='c')", 1, 17, "given twice"),
        ("SELECT § FROM s", 1, 8, "is not part of the language"),
        ("SELECT /* x", 1, 8, "a comment that begins here does not end"),
    ],
)
def test_an_error_points_at_the_word(text: str, line: int, column: int, told: str) -> None:
    with pytest.raises(SqlSyntaxError) as raised:
        parse(text)
    assert raised.value.place == Place(line, column)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "+".join(["a"] * (DEPTH_MAX + 10)) + " FROM s",
        "SELECT " + "- " * 5_000 + "a FROM s",
        "SELECT " + "F(" * 2_000 + "a" + ")" * 2_000 + " FROM s",
        "CREATE STREAM s (a " + "ARRAY<" * 2_000 + "INT" + ">" * 2_000 + ")",
        "SELECT " + "a," * STATEMENT_TOKENS_MAX + "a FROM s",
    ],
    ids=["sum", "signs", "calls", "type", "items"],
)
def test_what_has_no_end_is_refused(text: str) -> None:
    with pytest.raises(SqlSyntaxError, match=r"nested more than|has more than"):
        parse(text)


def test_brackets_without_end_are_no_levels() -> None:
    assert parse_one("SELECT " + "(" * 2_000 + "a" + ")" * 2_000 + " FROM s")


def test_one_statement_is_one() -> None:
    with pytest.raises(SqlSyntaxError, match="2 came"):
        parse_one("SHOW STREAMS; SHOW TABLES;")
    assert parse(" ;; -- nothing\n ; /* here */ ") == []


@settings(max_examples=300)
@given(st.lists(st.sampled_from([*STATEMENTS.split(), ";", "(", ")", "'", "`", "§"]), max_size=30))
def test_any_text_is_read_or_refused_at_a_place(words: list[str]) -> None:
    text = " ".join(words)
    try:
        found = parse(text)
    except SqlSyntaxError as error:
        assert 1 <= error.place.line <= text.count("\n") + 1
        assert error.picture().endswith("^")
    else:
        assert [parse_one(str(statement)) for statement in found] == found
