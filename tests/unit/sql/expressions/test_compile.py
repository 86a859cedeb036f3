"""What a compiled expression tells of itself, and of rows that fail."""

from typing import Any

import pytest
from tests.unit.sql.whole.cases import FUNCTIONS

from penstock.sql.expressions.compile import compile_expression
from penstock.sql.expressions.errors import SqlTypeError
from penstock.sql.expressions.schema import RowSchema
from penstock.sql.language.parse import DEPTH_MAX, parse_one
from penstock.sql.language.place import Place
from penstock.sql.types import kinds as k
from penstock.sql.types.failures import RowFailure

SCHEMA = RowSchema({"A": k.INTEGER, "S": k.STRING})


def expression(text: str) -> Any:
    return parse_one(f"SELECT {text}\nFROM s").items[0].value  # type: ignore[union-attr]


def test_an_error_names_the_word_that_is_wrong() -> None:
    with pytest.raises(SqlTypeError) as refused:
        compile_expression(expression("1 +\n  UCASE(A)"), SCHEMA, FUNCTIONS)
    assert refused.value.place == Place(2, 3)
    assert str(refused.value).startswith("line 2:3: Function 'UCASE' does not accept parameters")


def test_a_row_that_fails_is_null_and_told() -> None:
    compiled = compile_expression(expression("10 / A"), SCHEMA, FUNCTIONS)
    told: list[RowFailure] = []
    found = [compiled.value_or_null({"A": a}, told.append) for a in (5, 0, None)]
    assert found == [2, None, None]
    assert [failure.reason for failure in told] == ["/ by zero"]


def test_a_column_that_the_row_lacks_is_null() -> None:
    assert compile_expression(expression("A + 1"), SCHEMA, FUNCTIONS).evaluate({}) is None


def test_the_deepest_expression_that_the_language_reads_is_compiled() -> None:
    text = "1" + " + A" * (DEPTH_MAX - 10)
    compiled = compile_expression(expression(text), SCHEMA, FUNCTIONS)
    assert compiled.evaluate({"A": 1}) == DEPTH_MAX - 9
