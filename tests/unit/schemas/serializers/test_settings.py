"""Settings of serializers, under Confluent's names."""

from typing import Any

import pytest

from penstock.errors import ConfigError
from penstock.schemas.errors import SchemaError
from penstock.schemas.registry_client import RegistryClient
from penstock.schemas.serializers.settings import SerializerSettings, registry_of

REGISTRY = RegistryClient("http://127.0.0.1:1")


def settings(is_key: bool = False, **given: Any) -> SerializerSettings:
    named = {key.replace("_", "."): value for key, value in given.items()}
    return SerializerSettings.of(named, is_key=is_key, registry=REGISTRY)


def test_schemas_are_registered_unless_the_registry_says_what_to_write() -> None:
    assert settings().auto_register
    assert not settings(auto_register_schemas="false").auto_register
    for given in (
        {"use_latest_version": "true"},
        {"use_schema_id": "7"},
        {"use_latest_with_metadata": {"a": 1}},
    ):
        assert not settings(**given).auto_register
        with pytest.raises(ConfigError, match="contradict"):
            settings(auto_register_schemas=True, **given)


def test_a_subject_is_named_for_keys_and_values_apart() -> None:
    given = {
        "key_subject_name_strategy": "RecordNameStrategy",
        "value_subject_name_strategy": "io.confluent.kafka.serializers.subject.TopicNameStrategy",
    }
    assert settings(is_key=True, **given).subject("t", "shop.Order") == "shop.Order"
    assert settings(**given).subject("t", "shop.Order") == "t-value"
    assert settings(subject_name_strategy="TopicRecordNameStrategy").subject("t", "r") == "t-r"
    assert settings(subject_name_strategy=lambda *words: str(words)).subject("t", None) == (
        "('t', False, None)"
    )


def test_metadata_is_a_mapping_or_its_words() -> None:
    found = settings(use_latest_with_metadata="major=2, owner=a=b")
    assert found.latest_metadata == {"major": "2", "owner": "a=b"}
    assert found.wants_latest
    with pytest.raises(ConfigError, match="name=value"):
        settings(use_latest_with_metadata="major")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "schema.registry.url is missing"),
        ({"schema.registry.url": "localhost:8081"}, "does not begin with http"),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "is not one of"),
        ({"basic.auth.credentials.source": "USER_INFO"}, "needs basic.auth.user.info"),
        ({"schema.registry.ssl.truststore.location": "a.jks"}, "PEM"),
        ({"latest.cache.ttl.sec": "soon"}, "not a whole number"),
        ({"schema.registry.request.timeout.ms": "1s"}, "not a whole number"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(given: dict[str, object], words: str) -> None:
    url = {"schema.registry.url": "http://localhost:8081"} if given else {}
    with pytest.raises(ConfigError, match=words):
        registry_of({**url, **given})


def test_flags_and_strategies_that_are_none_are_refused() -> None:
    with pytest.raises(ConfigError, match="neither true nor false"):
        settings(use_latest_version="maybe")
    with pytest.raises(SchemaError, match="is none of"):
        settings(subject_name_strategy="MyStrategy")


def test_several_addresses_are_taken_as_a_list_or_as_words() -> None:
    expected = ("http://a:1", "http://b:2")
    assert registry_of({"schema.registry.url": "http://a:1, http://b:2/"}).urls == expected
    assert registry_of({"schema.registry.url": list(expected)}).urls == expected
