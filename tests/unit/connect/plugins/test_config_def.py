"""Settings as data: parsed, or validated with all errors at once, in Kafka's words."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import AtLeast, NonEmptyText, OneOfWords, WithinRange
from penstock.errors import ConfigError

HIGH = Importance.HIGH
DEFINITION = ConfigDef(
    ConfigEntry("topic", ConfigType.STRING, NO_DEFAULT, HIGH, "x", validator=NonEmptyText()),
    ConfigEntry("size", ConfigType.INT, 9, HIGH, "x", validator=AtLeast(1), group="Sizes"),
    ConfigEntry("mode", ConfigType.STRING, "a", HIGH, "x", validator=OneOfWords(("a", "b"))),
    ConfigEntry("names", ConfigType.LIST, [], HIGH, "x"),
    ConfigEntry("key", ConfigType.PASSWORD, None, HIGH, "x"),
    ConfigEntry("fast", ConfigType.BOOLEAN, False, HIGH, "x"),
    ConfigEntry("rate", ConfigType.DOUBLE, 0.5, HIGH, "x", validator=WithinRange(0, 1)),
)


def test_values_are_parsed_by_their_types() -> None:
    given = {"topic": " t ", "size": "12", "names": "a , b,c", "fast": "TRUE", "rate": "1"}
    assert DEFINITION.parse({**given, "unknown": "x"}) == {
        "topic": "t",
        "size": 12,
        "mode": "a",
        "names": ["a", "b", "c"],
        "key": None,
        "fast": True,
        "rate": 1.0,
    }


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, 'Missing required configuration "topic" which has no default value.'),
        ({"topic": ""}, "Invalid value  for configuration topic: String must be non-empty"),
        ({"size": "0"}, "Invalid value 0 for configuration size: Value must be at least 1"),
        ({"size": "1_0"}, "Invalid value 1_0 for configuration size: Not a number of type INT"),
        ({"size": "3000000000"}, "for configuration size: Not a number of type INT"),
        ({"mode": "c"}, "Invalid value c for configuration mode: String must be one of: a, b"),
        ({"fast": "yes"}, "for configuration fast: Expected value to be either true or false"),
        ({"rate": "2"}, "for configuration rate: Value must be no more than 1"),
    ],
)
def test_what_is_wrong_is_said_in_kafkas_words(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        DEFINITION.parse(given if "topic" in given or not given else {"topic": "t", **given})
    assert sentence in str(raised.value)


def test_validation_finds_all_errors_at_once() -> None:
    checked = DEFINITION.validate({"size": "x", "mode": "c", "key": "s3cret"})
    assert checked.error_count == 4  # What is no number is null, and null is no size either.
    assert set(checked.errors()) == {"topic", "size", "mode"}
    document = checked.document("Some")
    assert (document["name"], document["error_count"]) == ("Some", 4)
    assert document["groups"] == ["Sizes"]
    assert "s3cret" not in str(document)
    size = next(one for one in document["configs"] if one["definition"]["name"] == "size")
    assert size["definition"] == {
        "name": "size",
        "type": "INT",
        "required": False,
        "default_value": "9",
        "importance": "HIGH",
        "documentation": "x",
        "group": "Sizes",
        "width": "NONE",
        "display_name": "size",
        "dependents": [],
        "order_in_group": -1,
    }


class _Modes:
    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> list[Any]:
        return ["a", "b"]

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        return parsed["size"] > 1


def test_a_recommender_sees_the_other_values() -> None:
    entry = ConfigEntry("mode", ConfigType.STRING, "a", HIGH, "x", recommender=_Modes())
    size = ConfigEntry("size", ConfigType.INT, 1, HIGH, "x")
    value = ConfigDef(size, entry).validate({}).values[1].document()["value"]
    assert (value["recommended_values"], value["visible"]) == (["a", "b"], False)


def test_a_name_is_defined_once() -> None:
    with pytest.raises(ConfigError, match="Configuration topic is defined twice"):
        DEFINITION + ConfigDef(ConfigEntry("topic", ConfigType.STRING, "", HIGH, "x"))


@given(st.dictionaries(st.sampled_from(["topic", "size", "mode", "fast"]), st.text(max_size=5)))
def test_what_parses_validates_and_the_other_way_round(values: dict[str, str]) -> None:
    try:
        DEFINITION.parse(values)
    except ConfigError:
        assert DEFINITION.validate(values).error_count > 0
    else:
        assert DEFINITION.validate(values).error_count == 0
