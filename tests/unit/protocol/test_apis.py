"""The table of APIs: complete, lazy, and in step with the classes."""

import subprocess
import sys
import types
import typing

import pytest
from tests.unit.protocol.samples import api_messages

from penstock.broker.dispatch import served_versions
from penstock.errors import UnsupportedVersion
from penstock.protocol.apis import (
    PUBLIC_KEYS,
    ApiKey,
    is_flexible,
    request_class,
    response_class,
    supported_versions,
)
from penstock.protocol.schema import Struct
from penstock.protocol.source import body_fields


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: key.name.lower())
def test_every_api_has_a_request_and_a_response_of_the_same_versions(key: ApiKey) -> None:
    request, response = request_class(key), response_class(key)
    name = key.name.title().replace("_", "")
    assert (request.__name__, response.__name__) == (name + "Request", name + "Response")
    assert request.api_key is response.api_key is key
    assert request.versions == response.versions == supported_versions(key)
    assert is_flexible(key, request.flexible_from)
    assert not is_flexible(key, request.flexible_from - 1)


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [
        (ApiKey.PRODUCE, 0, 13),
        (ApiKey.FETCH, 0, 18),
        (ApiKey.LIST_OFFSETS, 0, 11),
        (ApiKey.METADATA, 0, 13),
        (ApiKey.OFFSET_COMMIT, 0, 10),
        (ApiKey.JOIN_GROUP, 0, 9),
        (ApiKey.API_VERSIONS, 0, 4),
        (ApiKey.DESCRIBE_LOG_DIRS, 0, 5),
        (ApiKey.SHARE_FETCH, 1, 2),
    ],
)
def test_versions_reach_from_kafka_3_9_to_kafka_4_3(key: ApiKey, low: int, high: int) -> None:
    assert supported_versions(key) == range(low, high + 1)


def test_an_unknown_key_has_no_versions_and_no_class() -> None:
    assert list(supported_versions(1234)) == []
    assert not is_flexible(1234, 5)
    with pytest.raises(UnsupportedVersion, match="no API with key 1234"):
        request_class(1234)
    with pytest.raises(UnsupportedVersion, match="no API with key 1234"):
        response_class(1234)


def test_message_modules_are_imported_only_when_asked_for() -> None:
    script = (
        "import sys; from penstock.protocol.apis import ApiKey, request_class\n"
        "def loaded(): return [m.rpartition('.')[2] for m in sys.modules if '.messages.' in m]\n"
        "before = loaded(); request_class(ApiKey.FETCH); print(before, loaded())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[] ['fetch']"


def structs_of(kind: type[Struct]) -> typing.Iterator[type[Struct]]:
    yield kind
    for field in kind.fields.values():
        if isinstance(field.of, type) and issubclass(field.of, Struct):
            yield from structs_of(field.of)


def all_structs() -> typing.Iterator[type[Struct]]:
    for message in api_messages():
        yield from structs_of(message)


def test_a_field_that_can_be_null_is_annotated_so_and_no_other() -> None:
    for kind in all_structs():
        hints = typing.get_type_hints(kind)
        for name, field in kind.fields.items():
            if field.kind != "record_set":
                optional = isinstance(hints[name], types.UnionType)
                assert optional == bool(field.nullable), f"{kind.__name__}.{name}"


def test_no_tag_is_told_twice() -> None:
    for kind in all_structs():
        tags = [f.tag for f in kind.fields.values() if f.tag is not None]
        assert len(tags) == len(set(tags)), kind.__name__


def test_every_field_exists_somewhere_and_tagged_ones_only_in_flexible_versions() -> None:
    for message in api_messages():
        for kind in structs_of(message):
            for name, field in kind.fields.items():
                existing = [v for v in message.versions if field.exists_in(v)]
                assert existing, f"{kind.__name__}.{name} exists in no version"
                if field.tag is not None:
                    assert existing[0] >= message.flexible_from, f"{kind.__name__}.{name}"


def test_every_element_of_a_list_takes_at_least_one_byte() -> None:
    # Counts are bounded by the bytes that remain, which only works if no element is free.
    for message in api_messages():
        for version in (v for v in message.versions if v < message.flexible_from):
            for kind in structs_of(message):
                for _, field in body_fields(kind, version):
                    if isinstance(field.of, type) and issubclass(field.of, Struct):
                        assert body_fields(field.of, version), f"{field.of.__name__} {version}"


def test_the_brokers_private_apis_are_not_among_the_public_ones() -> None:
    private = set(ApiKey) - set(PUBLIC_KEYS)
    assert {key.name for key in private} == {
        "IMAGE_FETCH",
        "PARTITIONS_CHANGED",
        "BROKER_SHUTDOWN",
        "FORWARD",
        "REPLICA_ENDS",
    }
    assert min(private) > 2 * max(PUBLIC_KEYS)
    assert private.isdisjoint(served_versions())
