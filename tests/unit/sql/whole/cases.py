"""The cases of tests/golden/sql/expressions: an expression, and what becomes of it.

`==>` is followed by the type and the value, `=!=` by words of the reason why the expression is
refused, `=?=` by words of the reason why this row has no value. Values are written in Python, with
NULL, true, false, nan, inf and utc(...) for a timestamp. The row is ROW below; a column that begins
with N is NULL.
"""

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

from penstock.sql.expressions.schema import RowSchema
from penstock.sql.functions.built_in import built_in
from penstock.sql.functions.table import Surroundings
from penstock.sql.language.parse import parse_one
from penstock.sql.language.queries import Select, Selected
from penstock.sql.types import kinds as k

FOLDER: Final = Path(__file__).resolve().parents[3] / "golden" / "sql" / "expressions"
MARKS: Final = (" ==> ", " =!= ", " =?= ")

utc = partial(datetime, tzinfo=UTC)
VALUES: Final[dict[str, tuple[k.DataType, Any]]] = {
    "I": (k.INTEGER, 7),
    "B": (k.BIGINT, 5_000_000_000),
    "D": (k.DOUBLE, 1.5),
    "DE": (k.DecimalOf(5, 2), Decimal("12.34")),
    "S": (k.STRING, "Hello World"),
    "T": (k.BOOLEAN, True),
    "BT": (k.BYTES, b"abc"),
    "DT": (k.DATE, date(2021, 5, 11)),
    "TM": (k.TIME, time(13, 1, 2)),
    "TS": (k.TIMESTAMP, utc(2021, 5, 11, 13, 1, 2, 345_000)),
    "L": (k.ArrayOf(k.INTEGER), [1, 2, 3]),
    "LS": (k.ArrayOf(k.STRING), ["x", "y", "z"]),
    "M": (k.MapOf(k.STRING, k.INTEGER), {"a": 1, "b": 2}),
    "ST": (k.StructOf((("A", k.INTEGER), ("B", k.STRING))), {"A": 1, "B": "x"}),
}
ROW: Final = {
    **{name: value for name, (_, value) in VALUES.items()},
    **{f"N{name}": None for name in VALUES},
    "J.X": 11, "J.K": 21, "R.K": 22,
}  # fmt: skip
SCHEMA: Final = RowSchema(
    {
        **{name: kind for name, (kind, _) in VALUES.items()},
        **{f"N{name}": kind for name, (kind, _) in VALUES.items()},
        "J.X": k.INTEGER, "J.K": k.INTEGER, "R.K": k.INTEGER,
    },
    sources=frozenset({"SRC"}),
)  # fmt: skip
USER_TYPES: Final = {"MONEY": k.DecimalOf(10, 2)}
FUNCTIONS: Final = built_in(
    Surroundings(
        now_ms=lambda: 1_620_738_062_345,
        random=lambda: 0.25,
        random_bytes=lambda count: bytes(range(count)),
    )
)
_NAMES: Final = {
    "NULL": None, "true": True, "false": False, "nan": math.nan, "inf": math.inf,
    "Decimal": Decimal, "date": date, "time": time, "utc": utc,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a file."""

    place: str
    expression: str
    mark: str
    expected: str

    def __str__(self) -> str:
        return f"{self.place} {self.expression}"

    def parsed(self, text: str | None = None) -> Any:
        """The expression."""
        statement = parse_one(f"SELECT {text or self.expression} FROM s")
        assert isinstance(statement, Select)
        item = statement.items[0]
        assert isinstance(item, Selected)
        return item.value

    def type_and_value(self) -> tuple[str, Any]:
        """What `==>` is followed by: the type ends where its brackets are closed."""
        depth = 0
        for at, character in enumerate(self.expected):
            depth += (character in "<(") - (character in ">)")
            if character == " " and depth == 0:
                return self.expected[:at], value_of(self.expected[at:])
        raise AssertionError(f"no value: {self}")


def value_of(text: str) -> Any:
    return eval(text.strip(), {"__builtins__": {}}, dict(_NAMES))


def cases(*names: str) -> list[Case]:
    """All cases of the files."""
    return [
        _case(f"{name}:{number}", line)
        for name in names
        for number, line in enumerate((FOLDER / f"{name}.txt").read_text().splitlines(), 1)
        if line and not line.startswith("#")
    ]


def _case(place: str, line: str) -> Case:
    mark = next(mark for mark in MARKS if mark in line)
    expression, _, expected = line.partition(mark)
    return Case(place, expression.strip(), mark.strip(), expected.strip())


def is_same(found: Any, expected: Any) -> bool:
    """Equal and of the same class all the way down: 1, 1.0 and True differ, NaN is NaN."""
    if type(found) is not type(expected):
        return False
    if isinstance(found, float) and math.isnan(expected):
        return math.isnan(found)
    if isinstance(found, dict):
        same_keys = list(found) == list(expected)
        return same_keys and all(is_same(found[key], expected[key]) for key in found)
    if isinstance(found, list):
        pairs = zip(found, expected, strict=False)
        return len(found) == len(expected) and all(is_same(one, two) for one, two in pairs)
    if isinstance(found, Decimal):
        return found.as_tuple() == expected.as_tuple()
    return bool(found == expected)
