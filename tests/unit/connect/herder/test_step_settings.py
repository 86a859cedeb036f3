"""Settings of transforms, predicates and converters are looked at one by one, as Apache's do."""

from penstock.connect.herder.step_settings import (
    checked_converters,
    checked_steps,
    doubled_aliases,
)

HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
CAST = "org.apache.kafka.connect.transforms.Cast$Value"
MATCHES = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"
JSON = "org.apache.kafka.connect.json.JsonConverter"


def test_each_transform_shows_its_settings_in_a_group_of_its_own() -> None:
    config = {"transforms": "c", "transforms.c.type": CAST, "transforms.c.spec": "n:string"}
    found = checked_steps(config)
    assert found.groups == ("Transforms: c",)
    assert [one.entry.name for one in found.values] == [
        "transforms.c.type",
        "transforms.c.plugin.version",
        "transforms.c.spec",
        "transforms.c.negate",
        "transforms.c.predicate",
        "transforms.c.replace.null.with.default",
    ]
    assert [one.entry.order for one in found.values] == [0, 1, 2, 3, 4, 5]
    assert found.values[0].entry.display_name == "Transformation type for c"
    assert found.values[2].entry.display_name == "spec"
    assert found.error_count == 0


def test_all_that_is_wrong_with_steps_is_told_at_the_setting_that_is_wrong() -> None:
    config = {
        "transforms": "a, b, none",
        "transforms.a.type": "no.such",
        "transforms.b.type": HOIST,
        "transforms.b.negate": "perhaps",
        "predicates": "p",
        "predicates.p.type": MATCHES,
        "predicates.p.pattern": "[",
    }
    found = checked_steps(config)
    assert {name: len(errors) for name, errors in found.errors().items()} == {
        "transforms.a.type": 1,
        "transforms.b.field": 1,
        "transforms.b.negate": 1,
        "transforms.none.type": 1,
        "predicates.p.pattern": 1,
    }
    sentence = (
        "Invalid value no.such for configuration transforms.a.type: Class no.such could not be"
        " found."
    )
    assert found.errors()["transforms.a.type"] == (sentence,)
    assert found.groups[-1] == "Predicates: p"


def test_a_name_given_twice_is_one_step_and_an_error_of_its_list() -> None:
    config = {"transforms": "a,a", "transforms.a.type": HOIST, "transforms.a.field": "f"}
    assert len(checked_steps(config).groups) == 1
    ((name, sentence),) = doubled_aliases(config)
    assert name == "transforms"
    assert (
        sentence == "Invalid value [a, a] for configuration transforms: Duplicate alias provided."
    )


def test_the_settings_of_a_converter_that_the_connector_names_are_looked_at() -> None:
    config = {"value.converter": JSON, "value.converter.schemas.enable": "maybe"}
    found = checked_converters(config)
    assert "value.converter.schemas.enable" in found.errors() and found.error_count == 1
    assert checked_converters({"value.converter.schemas.enable": "maybe"}).values == ()
