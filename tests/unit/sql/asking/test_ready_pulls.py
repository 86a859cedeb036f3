"""Which statements mean the same but for a key, and where the key stands in them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.analysis.pulling import analyse_pull
from penstock.sql.asking.ready_pulls import key_values, places_of, shape_of
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.relations import DataFormat
from penstock.sql.commands.applying import Commands
from penstock.sql.language.parse import parse, parse_one
from penstock.sql.language.queries import Select
from penstock.sql.running.surroundings import machine_functions

FUNCTIONS = machine_functions()
TABLES = """
CREATE SOURCE TABLE t (k STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE SOURCE TABLE two (a STRING PRIMARY KEY, b BIGINT PRIMARY KEY, n INT)
    WITH (KAFKA_TOPIC='two', FORMAT='JSON');
CREATE SOURCE TABLE d (k DOUBLE PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='d', FORMAT='JSON');
CREATE SOURCE TABLE w (k STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON',
    WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 SECOND');
CREATE STREAM s (k STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
"""


def catalog() -> Catalog:
    made = Catalog()
    for statement in parse(TABLES):
        made = Commands(FUNCTIONS).apply(made, statement).catalog
    return made


CATALOG = catalog()


def asked(text: str) -> tuple[str | int, ...] | None:
    """The key that is all a statement asks for."""
    select = parse_one(text)
    assert isinstance(select, Select)
    return key_values(analyse_pull(select, CATALOG, FUNCTIONS).logical)


@pytest.mark.parametrize(
    ("text", "shape", "literals"),
    [
        ("SELECT * FROM t WHERE k = 'a';", "SELECT * FROM t WHERE k = ';", ("a",)),
        ("k = 'it''s' AND n=7", "k = ' AND n=#", ("it's", 7)),
        ("k='' LIMIT 10", "k=' LIMIT #", ("", 10)),
        ("a1 = 1.5 + 2e3 + 1234567890", "a1 = 1.5 + 2e3 + 1234567890", ()),
        ("k = 'a'b'", "k = 'b'", ("a",)),
    ],
)
def test_a_text_has_a_shape_and_literals(
    text: str, shape: str, literals: tuple[str | int, ...]
) -> None:
    assert shape_of(text) == (shape, literals)


@pytest.mark.parametrize(
    "text",
    ["k = 'a' -- it's", "/* ' */ k = 'a'", "`it's` = 'a'", "\"it's\" = 'a'", "k = '${v}'"],
)
def test_where_a_quote_may_be_none_there_is_no_shape(text: str) -> None:
    assert shape_of(text) is None


def test_a_very_long_text_has_no_shape() -> None:
    assert shape_of("k = '" + "x" * 5_000 + "'") is None


def test_what_is_no_literal_never_looks_like_one() -> None:
    """The number of literals is part of what is known, so that # and ' of others do not count."""
    good, bad = shape_of("k = 5 AND n = 'a'"), shape_of("k = # AND n = '")
    assert good is not None and bad is not None
    assert good[0] == bad[0] and len(good[1]) != len(bad[1])


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SELECT * FROM t WHERE k = 'a';", ("a",)),
        ("SELECT k, n + 1 AS m FROM t WHERE 'a' = k LIMIT 5;", ("a",)),
        ("SELECT k, ABS(n) AS m FROM t WHERE k = 'a';", None),  # Functions may take long.
        ("SELECT * FROM two WHERE b = 7 AND a = 'x';", ("x", 7)),
        ("SELECT * FROM two x WHERE x.a = 'x' AND x.b = 7;", ("x", 7)),
        ("SELECT * FROM two WHERE a = 'x';", None),  # One column of the key is missing.
        ("SELECT * FROM t WHERE k = 'a' AND n = 7;", None),
        ("SELECT * FROM t WHERE k = 'a' AND k = 'b';", None),
        ("SELECT * FROM t WHERE k = 'a' OR k = 'b';", None),
        ("SELECT * FROM t WHERE k IN ('a');", None),
        ("SELECT * FROM t WHERE k <> 'a';", None),
        ("SELECT * FROM t WHERE k = UCASE('a');", None),
        ("SELECT * FROM t WHERE k = 'a' LIMIT 0;", None),
        ("SELECT * FROM t;", None),
        ("SELECT * FROM d WHERE k = 7;", None),  # 7 is no DOUBLE as it is.
        ("SELECT * FROM w WHERE k = 'a';", None),
        ("SELECT * FROM s WHERE k = 'a';", None),
    ],
)
def test_a_condition_that_is_the_key_and_nothing_else(
    text: str, key: tuple[str | int, ...] | None
) -> None:
    assert asked(text) == key


@pytest.mark.parametrize("side", ["key_format", "value_format"])
def test_what_may_wait_for_a_registry_is_not_answered_on_the_loop(side: str) -> None:
    select = parse_one("SELECT * FROM t WHERE k = 'a';")
    assert isinstance(select, Select)
    logical = analyse_pull(select, CATALOG, FUNCTIONS).logical
    assert key_values(logical) == ("a",)
    source = logical.sources[0]
    registered = replace(source.relation, **{side: DataFormat("AVRO")})
    assert key_values(replace(logical, sources=(replace(source, relation=registered),))) is None


def test_a_literal_that_could_be_another_has_no_place() -> None:
    assert places_of(("a", 7), ("x", 7, "a")) == (2, 1)
    assert places_of(("a",), ("a", "a")) is None
    assert places_of(("a",), ("b",)) is None


@given(st.text(max_size=20), st.integers(0, 999_999_999), st.integers(1, 99))
def test_the_key_in_a_text_is_the_key_that_the_parser_finds(a: str, b: int, limit: int) -> None:
    quoted = a.replace("'", "''")
    text = f"SELECT n, 'it''s' AS c FROM two WHERE a = '{quoted}' AND b = {b} LIMIT {limit};"
    found = shape_of(text)
    if found is None:
        assert any(mark in a for mark in ("--", "/*", '"', "`", "${"))
        return
    shape, literals = found
    assert shape == "SELECT n, ' AS c FROM two WHERE a = ' AND b = # LIMIT #;"
    assert asked(text) == (a, b)
    places = places_of((a, b), literals)
    assert places == (1, 2) or (places is None and (a == "it's" or b == limit))
