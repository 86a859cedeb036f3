"""Functions by name."""

import pytest
from tests.unit.sql.whole.cases import FUNCTIONS

from penstock.sql.functions.overloads import FunctionRefused
from penstock.sql.functions.table import ScalarFunction, TableFunction


def test_names_are_found_in_any_case() -> None:
    assert FUNCTIONS.scalar("Ucase").name == "UCASE"
    assert FUNCTIONS.is_aggregate("sum")
    assert not FUNCTIONS.is_aggregate("ucase")


def test_a_name_may_be_a_scalar_and_a_table_function() -> None:
    kinds = {type(function) for function in FUNCTIONS.of_name("GENERATE_SERIES")}
    assert kinds == {ScalarFunction, TableFunction}
    assert not FUNCTIONS.is_table("GENERATE_SERIES")
    assert FUNCTIONS.is_table("EXPLODE")


def test_a_table_with_more_functions_leaves_the_old_one_as_it_was() -> None:
    mine = ScalarFunction(name="MINE", category="USER", about="Mine.", overloads=())
    assert FUNCTIONS.with_functions([mine]).scalar("mine") is mine
    with pytest.raises(FunctionRefused, match="Can't find any functions with the name 'mine'"):
        FUNCTIONS.scalar("mine")


def test_all_functions_are_listed_by_name() -> None:
    names = [function.name for function in FUNCTIONS.all()]
    assert names == sorted(names)
    assert len(names) >= 149
