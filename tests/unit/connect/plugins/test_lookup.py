"""Plug-ins by whole names, short names, and names of Python classes."""

import pytest

from penstock.connect.errors.kinds import UnknownPlugin
from penstock.connect.plugins.lookup import (
    PluginKind,
    find_plugin,
    load_plugin,
    plugin_documents,
    plugins,
)
from penstock.connect.transforms.cast import CastValue


def test_a_transform_answers_to_kafkas_name_and_to_shorter_ones() -> None:
    whole = "org.apache.kafka.connect.transforms.Cast$Value"
    for name in (whole, "Cast$Value", "penstock.connect.transforms.cast:CastValue"):
        assert load_plugin(PluginKind.TRANSFORM, name) is CastValue


def test_a_converter_may_leave_out_its_kind() -> None:
    assert find_plugin(PluginKind.CONVERTER, "Json").name.endswith("JsonConverter")


def test_an_unknown_connector_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(UnknownPlugin, match="which name matches nope, available connectors are"):
        find_plugin(PluginKind.CONNECTOR, "nope")


def test_a_class_that_cannot_be_imported_is_an_unknown_plug_in() -> None:
    with pytest.raises(UnknownPlugin, match="cannot be loaded"):
        load_plugin(PluginKind.TRANSFORM, "no.such.module:Class")


@pytest.mark.parametrize("kind", PluginKind)
def test_every_plug_in_of_the_house_is_there(kind: PluginKind) -> None:
    for plugin in plugins(kind):
        assert plugin.load() is not None


def test_all_plug_ins_are_listed_with_class_type_and_version() -> None:
    listed = plugin_documents(connectors_only=False)
    assert {
        "class": "org.apache.kafka.connect.transforms.Filter",
        "type": "transformation",
        "version": "4.3.1",
    } in listed
    assert {one["type"] for one in listed} >= {"transformation", "predicate", "converter"}
