"""The text that Spark gets: golden pairs, and literals that cannot be taken for anything else."""

import pytest

from penstock.streams import Column, coalesce, col, concat, struct, when
from penstock.streams.columns.resolve import RecordType, resolved
from penstock.streams.columns.sql_text import sql_text, text_literal
from penstock.streams.values.column_types import STRING, declared_type

RECORD = RecordType(key=STRING, value=declared_type({"n": "long", "x": "double", "s": "string"}))
NAMES = {"key": "k", "value": "v", "timestamp": "t"}


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (col("n") > 10, "(v.`n` > 10L)"),
        (col("n") + 1.5, "try_add(cast(v.`n` AS DOUBLE), double('1.5'))"),
        (-col("n"), "try_subtract(0L, v.`n`)"),
        (col("n") - -(2**63), "try_subtract(v.`n`, (-9223372036854775807L - 1L))"),
        (concat(col("key"), "it's"), r"concat(k, 'it\u0027s')"),
        (coalesce(col("s"), None), "coalesce(v.`s`, cast(NULL AS STRING))"),
        (
            when(col("timestamp") == 0, 1).otherwise(2),
            "(CASE WHEN (t = 0L) THEN 1L ELSE 2L END)",
        ),
        (struct(a=col("s").upper()), "named_struct('a', upper(v.`s`))"),
    ],
)
def test_the_text_of_an_expression(column: Column, text: str) -> None:
    assert sql_text(resolved(column, RECORD), NAMES) == text


def test_a_text_never_ends_its_quotes() -> None:
    assert text_literal("a'b\\c\n𝄞") == r"'a\u0027b\u005cc\u000a\U0001d11e'"
