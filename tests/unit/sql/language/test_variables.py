"""Variables: replaced in names, values and strings; never a way to another statement."""

import pytest

from penstock.sql.language.place import SqlSyntaxError
from penstock.sql.language.variables import substitute


def test_values_take_the_place_of_their_names() -> None:
    text = "SELECT ${a} FROM s WHERE x = 'it''s ${b} -- ${B}' AND y = ${n} -- ${unknown}\n"
    made = substitute(text, {"A": "col", "b": "o'x", "n": "-3"})
    assert made == "SELECT col FROM s WHERE x = 'it''s o''x -- o''x' AND y = -3 -- ${unknown}\n"


def test_two_dollars_stay_one() -> None:
    assert substitute("SELECT '$${a}' FROM `${a}`", {"a": "x"}) == "SELECT '${a}' FROM `x`"


@pytest.mark.parametrize("value", ["a; DROP STREAM s", "a b", "", "1 -- x", "(", "x/*", " x", "'"])
def test_a_value_is_one_word_or_in_quotes(value: str) -> None:
    with pytest.raises(SqlSyntaxError, match="not one name, number or string"):
        substitute("SELECT ${v} FROM s", {"v": value})
    quoted = value.replace("'", "''")
    assert substitute("SELECT '${v}' FROM s", {"v": value}) == f"SELECT '{quoted}' FROM s"


def test_an_unknown_variable_is_told_with_its_place() -> None:
    with pytest.raises(SqlSyntaxError, match=r"line 2:3: the variable x is not defined"):
        substitute("SHOW\n  ${x}", {})
    with pytest.raises(SqlSyntaxError, match="cannot be the name of a variable"):
        substitute("${1}", {"1": "a"})
