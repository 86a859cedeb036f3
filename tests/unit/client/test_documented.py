"""docs/api.md tells of everything that a program may use, in the words of the docstrings."""

import re

import pytest

import penstock
from penstock.client.documented import (
    CLIENTS,
    SERIALIZERS,
    VALUES,
    api_document,
    public_methods,
)
from penstock.client.serialization import FORMATS

PAGE = api_document(FORMATS)


def section(name: str) -> str:
    """What the page says of one class."""
    found = re.search(rf"^#+ {name}\n(.*?)(?=^#|\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found[1]


def test_everything_that_the_package_offers_has_its_part() -> None:
    offered = {name for name in penstock.__all__ if not name.startswith("_")}
    assert offered == {*CLIENTS, *SERIALIZERS, *VALUES}
    for name in offered:
        assert section(name).strip().partition("\n")[0].endswith((".", ":")), name


@pytest.mark.parametrize("name", CLIENTS)
def test_every_method_of_a_client_is_told_with_its_docstring(name: str) -> None:
    methods = public_methods(CLIENTS[name], name)
    offered = {word for word in vars(getattr(penstock, name)) if not word.startswith("_")}
    assert set(methods) == offered
    for method in methods:
        assert re.search(rf"^- `(?:await )?{method}(?:\(| ->).*?`: \S", section(name), re.M), method


def test_signatures_are_those_of_the_sources() -> None:
    assert "- `poll(timeout_s: float = 0.0) -> ConsumerRecords[K, V]`: Up to" in section("Consumer")
    assert "- `await close() -> None`: Leave the group" in section("AsyncConsumer")
    assert "SentK" not in PAGE and "_Config" not in PAGE


def test_fields_are_told_with_their_remarks() -> None:
    assert "- `offset: int`: NO_OFFSET with acks=0." in section("RecordMetadata")
    assert "- `EARLIEST = -2`" in section("OffsetSpec")


@pytest.mark.parametrize("word", FORMATS)
def test_every_format_has_a_python_type(word: str) -> None:
    assert f"| `{word}` | " in PAGE
