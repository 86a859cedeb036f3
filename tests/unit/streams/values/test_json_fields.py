"""JSON with declared fields: what is there is what was declared, or the record is unreadable."""

import math

import pytest

from penstock.streams import SerdeError, json_of

ORDER = json_of(name="string", cents="long", weight="double", tags=["string"], to={"zip": "long"})


def test_declared_fields_alone_are_read_and_written() -> None:
    found = ORDER.deserialize(b'{"more":1,"cents":5,"weight":2,"to":{"zip":7,"x":1}}')
    assert found == {"name": None, "cents": 5, "weight": 2.0, "tags": None, "to": {"zip": 7}}
    assert ORDER.serialize({"name": "a", "weight": math.inf, "other": 1}) == (
        b'{"name":"a","cents":null,"weight":null,"tags":null,"to":null}'
    )
    assert ORDER.deserialize(None) is None and ORDER.serialize(None) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"cents":1.0}',
        '{"cents":"1"}',
        '{"cents":true}',
        '{"cents":9223372036854775808}',
        '{"name":5}',
        '{"weight":NaN}',
        '{"tags":"a"}',
        '{"tags":[1]}',
        '{"to":{"zip":"x"}}',
        "null",
        "[]",
        "{",
        "",
    ],
)
def test_what_is_not_of_its_type_is_unreadable(text: str) -> None:
    with pytest.raises(SerdeError):
        ORDER.deserialize(text.encode())
