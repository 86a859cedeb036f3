"""Every type of DynamoDB as a value of Connect, with a schema that fits all images of a record."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.source_tasks import plain

from penstock.connect.connectors.changes.decimals import DecimalMode
from penstock.connect.connectors.dynamodb.items import (
    Item,
    ItemReader,
    item_json,
    item_shape,
    schema_of_shape,
)
from penstock.connect.errors.kinds import DataError
from penstock.connect.values.logical import WIDE
from penstock.connect.values.struct import StructValue, check_value

EXACT = "0.12345678901234567890123456789012345678"
EVERY: dict[str, Any] = {
    "s": {"S": "grün"},
    "n": {"N": EXACT},
    "b": {"B": b"\x00\xff"},
    "bool": {"BOOL": False},
    "null": {"NULL": True},
    "l": {"L": [{"N": "1"}, {"N": "2"}, {"NULL": True}]},
    "mixed": {"L": [{"N": "1"}, {"S": "x"}, {"M": {"a": {"B": b"y"}}}]},
    "empty": {"L": []},
    "m": {"M": {"in ner": {"M": {"deep": {"S": "d"}}}}},
    "ss": {"SS": ["b", "a"]},
    "ns": {"NS": ["2", "1.5"]},
    "bs": {"BS": [b"b", b"a"]},
}


def struct(item: Item, decimals: DecimalMode = DecimalMode.STRING, *others: Item) -> StructValue:
    schema = schema_of_shape(item_shape([item, *others]), "t.Value", decimals)
    return ItemReader(decimals=decimals).struct(schema, item)


def test_every_type_has_its_value() -> None:
    assert plain(struct(EVERY)) == {
        "s": "grün",
        "n": EXACT,
        "b": b"\x00\xff",
        "bool": False,
        "null": None,
        "l": ["1", "2", None],
        "mixed": ["1", '"x"', '{"a":"eQ=="}'],
        "empty": [],
        "m": {"in ner": {"deep": "d"}},
        "ss": ["a", "b"],
        "ns": ["1.5", "2"],
        "bs": [b"a", b"b"],
    }
    assert struct(EVERY)["m"].schema.fields[0].schema.name == "t.Value.m.in_ner"


def test_numbers_travel_as_the_settings_want_them() -> None:
    item: Item = {"n": {"N": "1E+2"}, "ns": {"NS": ["0.5"]}}
    assert plain(struct(item, DecimalMode.DOUBLE)) == {"n": 100.0, "ns": [0.5]}
    exact = struct({"n": {"N": EXACT}}, DecimalMode.PRECISE)["n"]
    unscaled = int.from_bytes(exact["value"], "big", signed=True)
    assert Decimal(unscaled).scaleb(-exact["scale"], WIDE) == Decimal(EXACT)


def test_images_of_a_record_share_a_schema_also_where_an_attribute_changed_its_type() -> None:
    old: Item = {"id": {"S": "1"}, "x": {"N": "7"}, "gone": {"BOOL": True}}
    new: Item = {"id": {"S": "1"}, "x": {"S": "seven"}}
    before, after = struct(old, DecimalMode.STRING, new), struct(new, DecimalMode.STRING, old)
    assert before.schema == after.schema
    assert plain(before) == {"id": "1", "x": "7", "gone": True}
    assert plain(after) == {"id": "1", "x": '"seven"', "gone": None}


def test_json_keeps_all_digits() -> None:
    text = item_json(EVERY)
    assert f'"n":{EXACT}' in text
    found = json.loads(text)
    assert found["mixed"] == [1, "x", {"a": "eQ=="}] and found["null"] is None
    assert found["bs"] == ["YQ==", "Yg=="] and found["s"] == "grün"


@pytest.mark.parametrize("strange", [{}, {"X": "1"}, {"S": "a", "N": "1"}])
def test_an_attribute_that_is_none_is_refused(strange: dict[str, str]) -> None:
    with pytest.raises(DataError, match="no attribute"):
        struct({"a": strange})
    with pytest.raises(DataError, match="no number"):
        struct({"a": {"N": "12x"}}, DecimalMode.DOUBLE)


_NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str)
_SCALARS = (
    st.builds(lambda one: {"S": one}, st.text(max_size=3))
    | st.builds(lambda one: {"N": one}, _NUMBERS)
    | st.builds(lambda one: {"B": one}, st.binary(max_size=3))
    | st.builds(lambda one: {"BOOL": one}, st.booleans())
    | st.just({"NULL": True})
    | st.builds(lambda one: {"NS": one}, st.lists(_NUMBERS, min_size=1, max_size=2))
)
_ATTRIBUTES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.builds(lambda one: {"L": one}, st.lists(inner, max_size=3))
        | st.builds(lambda one: {"M": one}, st.dictionaries(st.text(max_size=2), inner, max_size=3))
    ),
    max_leaves=8,
)
_ITEMS = st.dictionaries(st.sampled_from("abc"), _ATTRIBUTES)


@given(_ITEMS, _ITEMS, st.sampled_from(DecimalMode))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_schema_fits_whatever_it_was_made_for(one: Item, two: Item, mode: DecimalMode) -> None:
    for made in (struct(one, mode, two), struct(two, mode, one)):
        check_value(made.schema, made)
    assert json.loads(item_json(one)).keys() == one.keys()
