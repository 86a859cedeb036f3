"""Keys and values to bytes and back, under Java's names and Python's."""

import struct
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.errors import SerializationError
from penstock.client.serialization import ReadyDeserializer, ReadySerializer
from penstock.errors import ConfigError

JAVA = "org.apache.kafka.common.serialization."


def round_trip(name: str, value: Any) -> Any:
    encoded = ReadySerializer(f"{JAVA}{name}Serializer", {}, "value")("t", value)
    return ReadyDeserializer(f"{JAVA}{name}Deserializer", {}, "value")("t", encoded)


@given(st.text())
def test_text_survives(text: str) -> None:
    assert round_trip("String", text) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_longs_are_eight_bytes_big_endian(number: int) -> None:
    assert round_trip("Long", number) == number
    assert ReadySerializer("long", {}, "key")("t", number) == struct.pack(">q", number)


@given(st.integers(-(2**31), 2**31 - 1), st.floats(allow_nan=False), st.booleans(), st.binary())
def test_other_built_ins_survive(number: int, real: float, flag: bool, data: bytes) -> None:
    assert round_trip("Integer", number) == number
    assert round_trip("Double", real) == real
    assert round_trip("Boolean", flag) is flag
    assert round_trip("ByteArray", data) == data


def test_a_uuid_travels_as_text() -> None:
    value = uuid.uuid4()
    assert ReadySerializer("uuid", {}, "key")("t", value) == str(value).encode()
    assert round_trip("UUID", value) == value


@pytest.mark.parametrize("name", ["String", "Long", "Void", "UUID"])
def test_null_stays_null(name: str) -> None:
    assert round_trip(name, None) is None


def test_without_a_serializer_bytes_and_text_pass() -> None:
    encode = ReadySerializer(None, {}, "value")
    assert encode("t", b"x") == b"x"
    assert encode("t", "é") == "é".encode()
    assert encode("t", bytearray(b"y")) == b"y"
    assert encode("t", None) is None
    with pytest.raises(SerializationError, match="value of type int for topic t"):
        encode("t", 5)


def test_a_number_too_large_is_told_with_its_topic() -> None:
    with pytest.raises(SerializationError, match="The key of type int for topic t"):
        ReadySerializer("long", {}, "key")("t", 2**63)


def test_bytes_of_the_wrong_length_are_told() -> None:
    with pytest.raises(SerializationError, match="value of a record of topic t"):
        ReadyDeserializer("long", {}, "value")("t", b"short")


class PriceSerializer:
    """A custom one, as in the tutorials: configured, used, closed."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def configure(self, settings: Any, is_key: bool) -> None:
        self.seen.append((settings["currency"], is_key))

    def serialize(self, topic: str, value: Any) -> bytes:
        return f"{topic}:{value}".encode()

    def close(self) -> None:
        self.seen.append("closed")


def test_a_custom_serializer_is_configured_used_and_closed() -> None:
    custom = PriceSerializer()
    encode = ReadySerializer(custom, {"currency": "EUR"}, "key")
    assert encode("t", 5) == b"t:5"
    encode.close()
    assert custom.seen == [("EUR", True), "closed"]


def test_a_plain_function_serves_and_never_sees_null() -> None:
    assert ReadySerializer(str.upper, {}, "value")("t", None) is None
    assert ReadySerializer(lambda v: v.upper().encode(), {}, "value")("t", "a") == b"A"
    assert ReadyDeserializer(lambda data: data.decode() + "!", {}, "value")("t", b"a") == "a!"


def test_a_function_or_class_may_be_named_by_its_place() -> None:
    assert ReadySerializer("base64:b64encode", {}, "value")("t", b"abc") == b"YWJj"
    assert ReadyDeserializer("base64.b64decode", {}, "value")("t", b"YWJj") == b"abc"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no.such.module.Class", "cannot be found"),
        ("json.nothing", "cannot be found"),
        ("jsonn", "no format: choose from .*json.*or name a class as package.module.ClassName"),
        (f"{JAVA}ListSerializer", "has no counterpart"),
        (f"{JAVA}StringDeserializer", "here a serializer is wanted"),
    ],
)
def test_a_name_that_leads_nowhere_is_told(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ReadySerializer(name, {}, "value")


def test_the_encoding_of_text_may_be_chosen() -> None:
    settings = {"key.serializer.encoding": "utf-16-le", "serializer.encoding": "latin-1"}
    assert ReadySerializer("string", settings, "key")("t", "é") == "é".encode("utf-16-le")
    assert ReadySerializer("string", settings, "value")("t", "é") == b"\xe9"
    with pytest.raises(ConfigError, match="not a known encoding"):
        ReadySerializer("string", {"serializer.encoding": "klingon"}, "value")


def test_an_object_without_the_method_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no method serialize"):
        ReadySerializer(object(), {}, "value")  # type: ignore[arg-type]


@pytest.mark.parametrize("word", ["avro", "json-schema", "protobuf"])
def test_serializers_with_a_registry_have_words(word: str) -> None:
    settings = {"schema.registry.url": "http://127.0.0.1:1"}
    assert ReadySerializer(word, settings, "value")("t", None) is None
    assert ReadyDeserializer(word, settings, "key")("t", None) is None
    with pytest.raises(ConfigError, match=r"schema\.registry\.url is missing"):
        ReadySerializer(word, {}, "value")


@pytest.mark.parametrize("name", ["KafkaAvro", "json.KafkaJsonSchema", "protobuf.KafkaProtobuf"])
def test_serializers_with_a_registry_have_confluents_names(name: str) -> None:
    settings = {"schema.registry.url": "http://127.0.0.1:1"}
    full = f"io.confluent.kafka.serializers.{name}"
    assert ReadySerializer(f"{full}Serializer", settings, "value")("t", None) is None
    assert ReadyDeserializer(f"{full}Deserializer", settings, "value")("t", None) is None
    with pytest.raises(ConfigError, match="a serializer is wanted"):
        ReadySerializer(f"{full}Deserializer", settings, "value")
    with pytest.raises(ConfigError, match="no counterpart here"):
        ReadySerializer("io.confluent.kafka.serializers.OtherSerializer", settings, "value")
