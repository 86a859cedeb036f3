"""Functions of users: read from files and read again; what is wrong is told with its line."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sql.whole.cases import FUNCTIONS, ROW, SCHEMA

from penstock.sql.expressions.calls import CallCompiler, compile_aggregate
from penstock.sql.expressions.compile import ExpressionCompiler
from penstock.sql.functions.user.loading import Refreshed, UserFunctions
from penstock.sql.language.parse import parse_one
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import shown

GOOD = '''
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, TypeVar

from penstock.sql.functions import udaf, udf, udtf

T = TypeVar("T")

@dataclass
class Point:
    x: float
    y: float

@udf
def hypot(x: float, y: float = 1.0) -> float:
    """The length of a vector."""
    return (x * x + y * y) ** 0.5

@udf(name="first_of", author="me")
def first(items: list[T]) -> T | None:
    return items[0] if items else None

@udf
def point(x: float | None, y: float) -> Point:
    return Point(x or 0.0, y)

@udf
def twice(amount: Decimal) -> Annotated[Decimal, "DECIMAL(6, 2)"]:
    return amount * 2

@udf(returns="INTEGER")
def total(*values: int):
    return sum(values)

@udf
def broken(value: int) -> int:
    return 1 // (value - 7)

@udf
def liar(value: int) -> int:
    return "text"

@udtf
def letters(text: str) -> Iterator[str]:
    yield from text

@udtf
def endless(text: str) -> Iterator[str]:
    while True:
        yield text

@udaf
class Spread:
    """The largest less the smallest, times a factor."""

    def __init__(self, factor: int = 1) -> None:
        self.factor = factor

    def initialize(self) -> list[int]:
        return []

    def add(self, state: list[int], value: int) -> list[int]:
        return [*state, value]

    def undo(self, state: list[int], value: int) -> list[int]:
        return [*state[:-1]]

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        return left + right

    def result(self, state: list[int]) -> int:
        return (max(state) - min(state)) * self.factor
'''


def loaded(folder: Path, **files: str) -> Refreshed:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return UserFunctions(folder, frozenset({"ABS"})).refresh()


def compiler_of(found: Refreshed) -> ExpressionCompiler:
    return ExpressionCompiler(SCHEMA, FUNCTIONS.with_functions(found.functions))


def call(text: str) -> Any:
    return parse_one(f"SELECT {text} FROM s").items[0].value  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> ExpressionCompiler:
    found = loaded(tmp_path_factory.mktemp("functions"), good=GOOD)
    assert found.errors == ()
    return compiler_of(found)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("HYPOT(3, 4)", "DOUBLE", 5.0),
        ("HYPOT(0)", "DOUBLE", 1.0),
        ("HYPOT(ND, 1)", "DOUBLE", None),
        ("FIRST_OF(L)", "INTEGER", 1),
        ("FIRST_OF(LS)", "STRING", "x"),
        ("POINT(ND, 2)->`y`", "DOUBLE", 2.0),
        ("POINT(ND, ND)", "STRUCT<`x` DOUBLE, `y` DOUBLE>", None),
        ("CAST(TWICE(DE) AS STRING)", "STRING", "24.68"),
        ("TOTAL(1, 2, I)", "INTEGER", 10),
        ("TOTAL()", "INTEGER", 0),
    ],
)
def test_a_function_is_typed_by_its_annotations(
    compiler: ExpressionCompiler, text: str, kind: str, value: object
) -> None:
    compiled = compiler.compile(call(text))
    assert (shown(compiled.type), compiled.evaluate(ROW)) == (kind, value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("BROKEN(I)", r"BROKEN failed at .*good\.py:\d+: ZeroDivisionError: "),
        ("LIAR(I)", "str 'text' is not BIGINT"),
        ("TOTAL(2147483647, 1)", "does not fit in INTEGER"),
    ],
)
def test_a_failure_of_a_row_says_where_it_was(
    compiler: ExpressionCompiler, text: str, reason: str
) -> None:
    with pytest.raises(RowFailure, match=reason):
        compiler.compile(call(text)).evaluate(ROW)


def test_a_table_function_yields_rows_and_is_bounded(
    compiler: ExpressionCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.sql.functions.user.guarding.ROWS_MAX", 100)
    rows = CallCompiler(compiler).compile_rows(call("LETTERS('abc')"))
    assert (shown(rows.type), rows.evaluate(ROW)) == ("STRING", ["a", "b", "c"])
    with pytest.raises(RowFailure, match="more than 100 rows"):
        CallCompiler(compiler).compile_rows(call("ENDLESS(S)")).evaluate(ROW)


def test_an_aggregate_has_a_state_constants_and_undo(compiler: ExpressionCompiler) -> None:
    compiled = compile_aggregate(call("SPREAD(I, 3)"), compiler)
    machine = compiled.aggregator
    state = machine.initialize()
    for value in (3, None, 9):
        state = machine.add(state, *compiled.values({"I": value}))
    assert state == [3, 9], "a NULL that is not wanted leaves the state as it is"
    assert (shown(machine.state_type), machine.result(state)) == ("ARRAY<BIGINT>", 18)
    assert machine.undo is not None
    assert machine.result(machine.undo(machine.add(state, 99), 99)) == 18
    assert compile_aggregate(call("SPREAD(I)"), compiler).aggregator.result([1, 2]) == 1


def test_a_decorated_function_stays_a_plain_one() -> None:
    from penstock.sql.functions import udf

    @udf
    def double(value: int) -> int:
        return 2 * value

    assert double(2) == 4


def test_functions_are_documented_by_their_first_line(compiler: ExpressionCompiler) -> None:
    (function,) = compiler.functions.of_name("HYPOT")
    assert function.about == "The length of a vector."
    assert function.path.endswith("good.py")
    assert function.overloads[0].shown("HYPOT") == "HYPOT(DOUBLE x, DOUBLE y)"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("x = 1\n\ndef f(:\n", 3, "SyntaxError"),
        ("x = 1\nraise RuntimeError('no')\n", 2, "RuntimeError: no"),
        ("import nothing_like_it\n", 1, "ModuleNotFoundError"),
        ("{0}\n@udf\ndef f(x) -> int: ...\n", 2, "the parameter x has no annotation"),
        ("{0}\n@udf\ndef f(x: int): ...\n", 2, "does not say what it returns"),
        ("{0}\n@udf\ndef f(x: object) -> int: ...\n", 2, "object stands for no type"),
        ("{0}\n@udf\ndef f(x: 'Nope') -> int: ...\n", 2, "an annotation is not known"),
        ("{0}\n@udf\ndef f(*, x: int) -> int: ...\n", 2, "cannot be given by position"),
        ("{0}\n@udf(returns='NOPE')\ndef f() -> int: ...\n", 2, "unknown type: NOPE"),
        ("{0}\n@udtf\ndef f(x: int) -> int: ...\n", 2, "must return a list of rows"),
        ("{0}\n@udaf\nclass F:\n  def add(self, s: int, x: int) -> int: ...\n", 4, "has no method"),
        ("{0}\n@udf\ndef abs(x: int) -> int: ...\n", 2, "ABS is built in"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(
    tmp_path: Path, text: str, line: int, reason: str
) -> None:
    imports = "from penstock.sql.functions import udaf, udf, udtf"
    found = loaded(tmp_path, bad=text.replace("{0}", imports))
    assert found.functions == ()
    (error,) = found.errors
    assert (error.path.name, error.line) == ("bad.py", line)
    assert reason in error.reason
    assert str(error).startswith(f"{tmp_path / 'bad.py'}:{line}: ")


def one(name: str, value: int) -> str:
    head = "from penstock.sql.functions import udf\n@udf\n"
    return f"{head}def {name}() -> int:\n    return {value}\n"


def evaluated(found: Refreshed, text: str) -> object:
    return compiler_of(found).compile(call(text)).evaluate(ROW)


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    files = UserFunctions(tmp_path)
    assert files.refresh() == Refreshed(functions=(), errors=(), has_changed=False)
    path.write_text(one("f", 1))
    assert evaluated(files.refresh(), "F()") == 1
    assert not files.refresh().has_changed
    path.write_text(one("f", 2))
    os.utime(path, ns=(1, 1))  # A second write within a tick of the clock counts too.
    assert evaluated(files.refresh(), "F()") == 2
    path.write_text("def f(:")
    broken = files.refresh()
    assert (evaluated(broken, "F()"), len(broken.errors)) == (2, 1), "the last good version stays"
    path.unlink()
    assert files.refresh() == Refreshed(functions=(), errors=(), has_changed=True)


def test_a_name_in_two_files_is_told_and_the_first_counts(tmp_path: Path) -> None:
    found = loaded(tmp_path, a=one("f", 1), b=one("f", 2), _c=one("g", 3))
    assert [function.name for function in found.functions] == ["F"]
    assert evaluated(found, "F()") == 1
    assert "the function F is also in" in str(found.errors[0])
