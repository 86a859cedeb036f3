"""Types as ksqlDB writes them."""

import pytest

from penstock.sql.types import kinds as k

NESTED = k.ArrayOf(k.MapOf(k.STRING, k.StructOf((("A", k.DecimalOf(4, 2)), ("b", k.BYTES)))))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (k.INTEGER, "INTEGER"),
        (k.DecimalOf(4, 2), "DECIMAL(4, 2)"),
        (NESTED, "ARRAY<MAP<STRING, STRUCT<`A` DECIMAL(4, 2), `b` BYTES>>>"),
        (k.StructOf(()), "STRUCT< >"),
        (None, "NULL"),
    ],
)
def test_a_schema_shows_a_type(kind: k.DataType | None, text: str) -> None:
    assert k.shown(kind) == text


def test_describe_shows_strings_as_varchar() -> None:
    text = "ARRAY<MAP<VARCHAR(STRING), STRUCT<A DECIMAL(4, 2), b BYTES>>>"
    assert k.described(NESTED) == text


def test_the_parts_of_a_type_are_all_types_in_it() -> None:
    assert [k.kind_name(part) for part in k.parts(NESTED)] == [
        "ARRAY",
        "MAP",
        "STRING",
        "STRUCT",
        "DECIMAL",
        "BYTES",
    ]
