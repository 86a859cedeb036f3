"""Under which subject a format registers."""

import pytest

from penstock.schemas.errors import SchemaError
from penstock.spark.formats.registering import subject_of


def test_what_was_said_goes_before_the_topic() -> None:
    assert subject_of("mine", "orders", is_key=False) == "mine"
    assert subject_of(None, "orders", is_key=False) == "orders-value"
    assert subject_of(None, "orders", is_key=True) == "orders-key"


def test_without_a_topic_the_ways_to_name_it_are_told() -> None:
    with pytest.raises(SchemaError, match=r"schema_topic=.*subject="):
        subject_of(None, None, is_key=False)
