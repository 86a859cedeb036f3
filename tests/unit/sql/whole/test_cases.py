"""Expressions, functions and casts by tables of cases, each checked for its type and its value."""

import re

import pytest
from tests.unit.sql.whole.cases import (
    FUNCTIONS,
    ROW,
    SCHEMA,
    USER_TYPES,
    Case,
    cases,
    is_same,
    value_of,
)

from penstock.sql.expressions.calls import CallCompiler, compile_aggregate
from penstock.sql.expressions.compile import ExpressionCompiler, compile_expression
from penstock.sql.expressions.errors import SqlTypeError
from penstock.sql.functions.aggregates.aggregate import AggregateFunction
from penstock.sql.functions.table import ScalarFunction, TableFunction
from penstock.sql.language.place import Place
from penstock.sql.types import kinds as k
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import shown

SCALAR_CASES = cases("operators", "casts", "numeric", "strings", "collections", "dates")
AGGREGATE_CASES = cases("aggregates")
TABLE_CASES = cases("tables")
COMPILER = ExpressionCompiler(SCHEMA.with_columns({"Y": k.STRING}), FUNCTIONS, USER_TYPES)


@pytest.mark.parametrize("case", SCALAR_CASES, ids=str)
def test_an_expression_has_its_type_and_value(case: Case) -> None:
    expression = case.parsed()
    if case.mark == "=!=":
        with pytest.raises(SqlTypeError) as refused:
            compile_expression(expression, SCHEMA, FUNCTIONS, USER_TYPES)
        assert case.expected in refused.value.reason
        assert isinstance(refused.value.place, Place), "every refusal points at a word"
        return
    compiled = compile_expression(expression, SCHEMA, FUNCTIONS, USER_TYPES)
    if case.mark == "=?=":
        with pytest.raises(RowFailure, match=re.escape(case.expected)):
            compiled.evaluate(ROW)
        return
    kind, value = case.type_and_value()
    assert shown(compiled.type) == kind
    found = compiled.evaluate(ROW)
    assert is_same(found, value), found


@pytest.mark.parametrize("case", AGGREGATE_CASES, ids=str)
def test_an_aggregate_adds_merges_and_undoes(case: Case) -> None:
    text, _, listed = case.expression.partition(" [")
    call = case.parsed(text)
    if case.mark == "=!=":
        with pytest.raises(SqlTypeError, match=re.escape(case.expected)):
            compile_aggregate(call, COMPILER)
        return
    compiled = compile_aggregate(call, COMPILER)
    columns = [str(argument.source) for argument in compiled.arguments]
    rows = [row if isinstance(row, tuple) else (row,) for row in value_of(f"[{listed}")]
    values = [compiled.values(dict(zip(columns, row, strict=False))) for row in rows]
    machine = compiled.aggregator

    def state_of(rows: object) -> object:
        state = machine.initialize()
        for row in rows:  # type: ignore[attr-defined]
            state = machine.add(state, *row)
        return state

    if case.mark == "=?=":
        with pytest.raises(RowFailure, match=re.escape(case.expected)):
            state_of(values)
        return
    kind, expected = case.type_and_value()
    assert shown(machine.type) == kind
    whole = machine.result(state_of(values))
    assert is_same(whole, expected) or whole == pytest.approx(expected), whole
    for cut in range(len(values) + 1):
        merged = machine.result(machine.merge(state_of(values[:cut]), state_of(values[cut:])))
        assert is_same(merged, expected) or merged == pytest.approx(expected, nan_ok=True), cut
    if machine.undo is not None:
        for row in values:
            undone = machine.result(machine.undo(state_of([*values, row]), *row))
            assert is_same(undone, expected) or undone == pytest.approx(expected, nan_ok=True), row


@pytest.mark.parametrize("case", TABLE_CASES, ids=str)
def test_a_table_function_makes_rows(case: Case) -> None:
    call = case.parsed()
    if case.mark == "=!=":
        with pytest.raises(SqlTypeError, match=re.escape(case.expected)):
            CallCompiler(COMPILER).compile_rows(call)
        return
    compiled = CallCompiler(COMPILER).compile_rows(call)
    if case.mark == "=?=":
        with pytest.raises(RowFailure, match=re.escape(case.expected)):
            compiled.evaluate(ROW)
        return
    kind, expected = case.type_and_value()
    assert (shown(compiled.type), compiled.evaluate(ROW)) == (kind, expected)


def _shows_null(case: Case, name: str) -> bool:
    """Whether NULL is among the arguments of a call of the function."""
    calls = re.findall(rf"\b{name}\((.*)", case.expression)
    return any(re.search(r"\b(NULL|N(I|B|D|DE|S|T|BT|DT|TM|TS|L|LS|M|ST))\b", c) for c in calls)


@pytest.mark.parametrize("function", FUNCTIONS.all(), ids=lambda f: f"{type(f).__name__}-{f.name}")
def test_every_function_has_cases_with_null_and_a_line_that_documents_it(
    function: ScalarFunction | AggregateFunction | TableFunction,
) -> None:
    files = {ScalarFunction: SCALAR_CASES, AggregateFunction: AGGREGATE_CASES}
    listed = files.get(type(function), TABLE_CASES)
    named = [case for case in listed if re.search(rf"\b{function.name}\(", case.expression)]
    assert named, "no case"
    assert function.about.endswith("."), "no documentation"
    if any(overload.signature.parameters for overload in function.overloads):
        without_rows = isinstance(function, AggregateFunction) and any(
            "[]" in str(c) for c in named
        )
        has_null = any(_shows_null(case, function.name) for case in named)
        assert has_null or without_rows or "NULL" in str(named), "no case with NULL"


def test_there_are_as_many_cases_as_promised() -> None:
    assert len(SCALAR_CASES + AGGREGATE_CASES + TABLE_CASES) >= 900
