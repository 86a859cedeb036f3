"""Expressions get their types from the stream; what does not fit is refused with the reason."""

import pytest

from penstock.streams import Column, col, lit, struct, when
from penstock.streams.columns.resolve import RecordType, resolved
from penstock.streams.values.column_types import STRING, ColumnTypeError, declared_type

RECORD = RecordType(
    key=STRING, value=declared_type({"n": "long", "x": "double", "s": "string", "l": ["long"]})
)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (col("n") + 1, "long"),
        (col("n") + 1.5, "double"),
        (col("n") / 2, "double"),
        (1 - col("x"), "double"),
        (col("n") > col("x"), "boolean"),
        (when(col("n") > 1, None).otherwise(col("s")), "string"),
        (struct(a=col("n"), b=col("key")), "{a: long, b: string}"),
        (col("value.l"), "list of long"),
        (col("s").cast("double"), "double"),
    ],
)
def test_the_type_follows_from_the_parts(column: Column, kind: str) -> None:
    assert str(resolved(column, RECORD).type) == kind


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (col("n") + col("s"), "a string is no long"),
        (col("s") * 2, "a string"),
        (col("s") == 1, "write .cast"),
        (col("n") & True, "a long is no boolean"),
        (col("missing"), "there is no field 'missing': the fields are n, x, s, l"),
        (col("n.deep"), "it would be one of a long"),
        (col("x").cast("string"), "a double cannot be cast to a string"),
        (col("s").cast("date"), "it is one of boolean, long, double, string"),
        (col("l") == col("l"), "compares no list of long"),
        (lit(2**63) + 1, "too large for a long"),
        (col("n").upper(), "a long is no string"),
    ],
)
def test_what_does_not_fit_is_refused(column: Column, said: str) -> None:
    with pytest.raises(ColumnTypeError, match=said.replace("(", r"\(")):
        resolved(column, RECORD)


def test_a_stream_of_unknown_type_says_what_to_do() -> None:
    with pytest.raises(ColumnTypeError, match=r'value=json_of\(name="string", cents="long"\)'):
        resolved(col("n"), RecordType(key=STRING, value=None))


def test_a_column_has_no_truth_of_its_own() -> None:
    with pytest.raises(ColumnTypeError, match="write & for and"):
        bool(col("n") > 1)
