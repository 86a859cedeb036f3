"""Values of users made to fit."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from penstock.sql.types import kinds as k
from penstock.sql.types.conforming import conformed
from penstock.sql.types.failures import RowFailure


@dataclass
class Point:
    x: float


POINT = k.StructOf((("x", k.DOUBLE),))


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (1, k.DOUBLE, 1.0),
        ((1, 2), k.ArrayOf(k.INTEGER), [1, 2]),
        (Point(1), POINT, {"x": 1.0}),
        ({"x": 1, "y": 2}, POINT, {"x": 1.0}),
        (bytearray(b"a"), k.BYTES, b"a"),
        (datetime(2021, 1, 1), k.TIMESTAMP, datetime(2021, 1, 1, tzinfo=UTC)),
        (datetime(2021, 1, 1), k.DATE, date(2021, 1, 1)),
        (1.25, k.DecimalOf(3, 1), Decimal("1.3")),
        (None, k.INTEGER, None),
        ({"a": (None,)}, k.MapOf(k.STRING, k.ArrayOf(k.DATE)), {"a": [None]}),
    ],
)
def test_a_value_becomes_one_of_the_type(value: Any, kind: k.DataType, expected: Any) -> None:
    assert conformed(value, kind) == expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1", k.INTEGER), (1.0, k.INTEGER), (True, k.INTEGER), (1, k.BOOLEAN), (1 << 31, k.INTEGER),
        (1 << 63, k.BIGINT), ("ab", k.ArrayOf(k.STRING)), ([1], k.MapOf(k.STRING, k.INTEGER)),
        (object(), POINT),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused(value: Any, kind: k.DataType) -> None:
    with pytest.raises(ValueError, match=r"is not|does not fit"):
        conformed(value, kind)


def test_a_decimal_with_too_many_digits_is_refused() -> None:
    with pytest.raises(RowFailure):
        conformed(100, k.DecimalOf(2, 0))
