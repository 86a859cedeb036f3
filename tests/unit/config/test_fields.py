"""Every setting is an attribute of BrokerConfig, and the type written down for it is true."""

from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import get_args, get_origin, get_type_hints

import pytest

from penstock.config.broker import BROKER_SETTINGS, load
from penstock.config.fields import BrokerFields
from penstock.config.listeners import ListenerAddress
from penstock.config.settings import Password

HINTS = get_type_hints(
    BrokerFields,
    localns={
        "Mapping": Mapping,
        "Path": Path,
        "ListenerAddress": ListenerAddress,
        "Password": Password,
    },
)


def fits(value: object, hint: object) -> bool:
    if isinstance(hint, UnionType):
        return any(fits(value, part) for part in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(fits(item, get_args(hint)[0]) for item in value)
    if get_origin(hint) is Mapping:
        return isinstance(value, Mapping)
    assert isinstance(hint, type)
    return type(value) is hint or (issubclass(hint, Path | tuple) and isinstance(value, hint))


def test_each_setting_has_one_attribute() -> None:
    assert set(HINTS) == {setting.attribute for setting in BROKER_SETTINGS.values()}


@pytest.mark.parametrize("name", BROKER_SETTINGS)
def test_the_default_has_the_type_written_down(name: str) -> None:
    attribute = BROKER_SETTINGS[name].attribute
    assert fits(getattr(load(None, {}), attribute), HINTS[attribute])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broker.rack", "a"),
        ("log.retention.minutes", "3"),
        ("ssl.key.password", "x"),
        ("zookeeper.connection.timeout.ms", "5"),
        ("zookeeper.ssl.cipher.suites", "a,b"),
        ("log.dirs", "/a,/b"),
        ("max.connections.per.ip.overrides", "10.0.0.1:5"),
    ],
)
def test_a_value_given_for_a_setting_has_the_type_written_down(name: str, text: str) -> None:
    attribute = BROKER_SETTINGS[name].attribute
    value = getattr(load(None, {name: text}), attribute)
    assert type(value) is not NoneType
    assert fits(value, HINTS[attribute])
