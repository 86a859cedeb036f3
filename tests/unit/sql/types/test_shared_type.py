"""The type that expressions have together."""

from itertools import permutations

import pytest

from penstock.sql.types import kinds as k
from penstock.sql.types.conversions import is_convertible
from penstock.sql.types.shared_type import NoSharedType, Typed, number_type, shared_type, wider

NUMBERS = (k.INTEGER, k.BIGINT, k.DecimalOf(5, 2), k.DecimalOf(6, 4), k.DOUBLE)


def test_numbers_widen_in_any_order() -> None:
    for chosen in permutations(NUMBERS, 3):
        found = shared_type([Typed(kind) for kind in chosen])
        assert all(is_convertible(kind, found) for kind in chosen)
        assert found == shared_type([Typed(kind) for kind in reversed(chosen)])


def test_null_has_every_type() -> None:
    assert shared_type([Typed(None), Typed(k.DATE), Typed(None)]) == k.DATE
    assert shared_type([Typed(None)]) is None


def test_structs_get_the_fields_of_both() -> None:
    one = k.StructOf((("A", k.INTEGER), ("B", k.STRING)))
    two = k.StructOf((("A", k.BIGINT), ("C", k.DATE)))
    assert wider(one, two) == k.StructOf((("A", k.BIGINT), ("B", k.STRING), ("C", k.DATE)))


@pytest.mark.parametrize("pair", [(k.STRING, k.INTEGER), (k.DATE, k.TIME), (k.BOOLEAN, k.DOUBLE)])
def test_unlike_types_have_none_together(pair: tuple[k.DataType, k.DataType]) -> None:
    with pytest.raises(NoSharedType, match="operator does not exist"):
        shared_type([Typed(kind) for kind in pair])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", k.INTEGER), ("2147483648", k.BIGINT), ("1.50", k.DecimalOf(3, 2)),
        ("2e1", k.DOUBLE), ("x", None), ("NaN", None), ("1e999999", None),
        ("99999999999999999999", k.DecimalOf(20, 0)),
    ],
)  # fmt: skip
def test_a_string_literal_may_be_a_number(text: str, kind: k.DataType | None) -> None:
    assert number_type(text) == kind
