"""From written types to types."""

import pytest

from penstock.sql.language.parse import parse_one
from penstock.sql.language.statements import CreateType
from penstock.sql.types import kinds as k
from penstock.sql.types.reading import UnknownType, data_type


def read(text: str) -> k.DataType:
    statement = parse_one(f"CREATE TYPE t AS {text}")
    assert isinstance(statement, CreateType)
    return data_type(statement.type, {"ADDRESS": k.StructOf((("CITY", k.STRING),))})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("INT", k.INTEGER),
        ("VARCHAR", k.STRING),
        ("VARCHAR(STRING)", k.STRING),
        ("DECIMAL(10, 2)", k.DecimalOf(10, 2)),
        ("MAP<STRING, ARRAY<DATE>>", k.MapOf(k.STRING, k.ArrayOf(k.DATE))),
        ("ARRAY<address>", k.ArrayOf(k.StructOf((("CITY", k.STRING),)))),
        ("STRUCT<a INT, `b` TIME>", k.StructOf((("A", k.INTEGER), ("b", k.TIME)))),
    ],
)
def test_a_written_type_is_read(text: str, kind: k.DataType) -> None:
    assert read(text) == kind


@pytest.mark.parametrize("kind", k.PRIMITIVES.values(), ids=str)
def test_what_is_shown_is_read_back(kind: k.DataType) -> None:
    nested = k.StructOf((("x", k.ArrayOf(kind)), ("Y", k.DecimalOf(3, 3))))
    assert read(str(nested)) == nested


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NOPE", "Cannot resolve unknown type: NOPE"),
        ("DECIMAL", "takes a precision and a scale"),
        ("DECIMAL(0, 0)", "precision must be >= 1"),
        ("DECIMAL(2, 3)", "precision must be >= scale"),
        ("INT(3)", "takes no parameters"),
    ],
)
def test_a_type_that_is_none_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UnknownType, match=reason):
        read(text)
