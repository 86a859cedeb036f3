"""Rows for which something fails: NULL or the state as it was, and the reason is told."""

from pathlib import Path

from tests.support.sql_functions import sql_functions

from penstock.sql.analysis.checking import Row, TypeChecker
from penstock.sql.expressions.compiled import CompiledExpression
from penstock.sql.language.expressions import ColumnName, Expression
from penstock.sql.language.parse import parse
from penstock.sql.planning.evaluating import RowCompiler
from penstock.sql.running.surroundings import FunctionShelf
from penstock.sql.testing.session import TestSession
from penstock.sql.types.kinds import INTEGER

FUNCTIONS = """
from penstock.sql.functions.user.decorators import udaf, udf


@udf
def third(v: int) -> int:
    if v == 3:
        raise ValueError("not three")
    return v


@udaf
class no_three:
    def initialize(self) -> int:
        return 0

    def add(self, state: int, value: int) -> int:
        if value == 3:
            raise ValueError("not three")
        return state + value

    def merge(self, one: int, other: int) -> int:
        return one + other

    def result(self, state: int) -> int:
        if state == 1:
            raise ValueError("not one")
        return state
"""
SOURCE = (
    "CREATE STREAM S (K INT KEY, V INT, T VARCHAR) "
    "WITH (kafka_topic='s', value_format='JSON', partitions=1);"
)


def run(tmp_path: Path, query: str, rows: list[str], checks: list[str]) -> list[str]:
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    session = TestSession(FunctionShelf(tmp_path).table())
    inserts = [f"INSERT INTO S (K, V, T) VALUES ({row});" for row in rows]
    asserts = [f"ASSERT VALUES O {check};" for check in checks]
    for statement in parse("".join([SOURCE, query, *inserts, *asserts])):
        session.run(statement)
    return session.log


def test_a_function_that_raises_gives_null(tmp_path: Path) -> None:
    (told,) = run(
        tmp_path,
        "CREATE STREAM O AS SELECT K, THIRD(V) AS V FROM S;",
        ["1, 2, 'a'", "1, 3, 'a'", "1, 4, 'a'"],
        [f"(K, V) VALUES (1, {value})" for value in ("2", "NULL", "4")],
    )
    assert "Error computing expression THIRD(V)" in told and "ValueError: not three" in told


def test_an_aggregate_that_raises_goes_on_with_the_state_it_had(tmp_path: Path) -> None:
    told = run(
        tmp_path,
        "CREATE TABLE O AS SELECT K, NO_THREE(V) AS V, COUNT(*) AS N FROM S GROUP BY K;",
        ["1, 1, 'a'", "1, 3, 'a'", "1, 4, 'a'"],
        [f"(K, V, N) VALUES (1, {value})" for value in ("NULL, 1", "NULL, 2", "5, 3")],
    )
    assert len([one for one in told if "not three" in one]) == 1
    assert all("Error computing aggregate NO_THREE(V)" in one for one in told)
    assert any("not one" in one for one in told)


def test_a_time_that_cannot_be_read_leaves_the_records_own(tmp_path: Path) -> None:
    (told,) = run(
        tmp_path,
        "CREATE STREAM O WITH (timestamp='T', timestamp_format='yyyy-MM-dd') AS "
        "SELECT K, T FROM S;",
        ["1, 1, '1970-01-02'", "1, 1, 'never'"],
        ["(ROWTIME, K, T) VALUES (86400000, 1, '1970-01-02')", "(K, T) VALUES (1, 'never')"],
    )
    assert "Error computing the time of a row" in told


class BrokenFunctions(TypeChecker):
    """Whose functions have a mistake of their own."""

    def compiled(self, expression: Expression, row: Row) -> CompiledExpression:
        return CompiledExpression(INTEGER, lambda values: 1 // values["V"])


def test_a_built_in_function_that_breaks_does_not_stop_a_query() -> None:
    told: list[str] = []
    value = RowCompiler(BrokenFunctions(sql_functions(), {}), {}, told.append).value(
        ColumnName("V")
    )
    assert (value({"V": 1}), value({"V": 0}), value({"V": 1})) == (1, None, 1)
    assert told == ["Error computing expression V: ZeroDivisionError: "
                    "integer division or modulo by zero"]  # fmt: skip
