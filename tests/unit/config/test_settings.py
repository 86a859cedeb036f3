"""Settings parse their texts, refuse the wrong ones in a sentence, and print as Java does."""

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.settings import (
    ACTS,
    BOOLEAN,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    PASSWORD,
    READ_ONLY,
    SHORT,
    STRING,
    BadValue,
    Bounds,
    Matching,
    OneOf,
    Setting,
    SettingTable,
    Type,
    Valid,
    Value,
    attribute_name,
    java_double,
    to_print,
    to_text,
)
from penstock.errors import ConfigError


def setting(kind: Type, valid: Valid = None, name: str = "some.name") -> Setting:
    return Setting(name, kind, None, valid, HIGH, READ_ONLY, ACTS, "A text.")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOLEAN, " TRUE ", True),
        (BOOLEAN, "false", False),
        (INT, "-5", -5),
        (INT, " 2147483647", 2**31 - 1),
        (SHORT, "-32768", -(2**15)),
        (LONG, "9223372036854775807", LONG_MAX),
        (DOUBLE, "1.7976931348623157E308", 1.7976931348623157e308),
        (DOUBLE, ".5", 0.5),
        (STRING, " a b ", "a b"),
        (LIST, "a , b,c", ("a", "b", "c")),
        (LIST, "", ()),
        (PASSWORD, "secret", "secret"),
    ],
)
def test_a_text_becomes_a_value_of_its_type(kind: Type, text: str, value: Value) -> None:
    assert setting(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "allowed", "kafka"),
    [
        (BOOLEAN, "yes", "true or false", "Expected value to be either true or false"),
        (INT, "12.5", "a whole number", "Not a number of type INT"),
        (INT, "", "a whole number", "Not a number of type INT"),
        (INT, "1_000", "a whole number", "Not a number of type INT"),
        (INT, "٣", "a whole number", "Not a number of type INT"),
        (INT, "9" * 5000, "a whole number", "Not a number of type INT"),
        (
            INT,
            "2147483648",
            "a whole number from -2147483648 to 2147483647",
            "Not a number of type",
        ),
        (SHORT, "32768", "a whole number from -32768 to 32767", "Not a number of type SHORT"),
        (LONG, "abc", "a whole number", "Not a number of type LONG"),
        (DOUBLE, "nan", "a number", "Not a number of type DOUBLE"),
        (DOUBLE, "x", "a number", "Not a number of type DOUBLE"),
    ],
)
def test_a_text_of_another_type_is_refused_in_two_sentences(
    kind: Type, text: str, allowed: str, kafka: str
) -> None:
    with pytest.raises(BadValue) as caught:
        setting(kind).parse(text)
    assert str(caught.value) == f"some.name is {text or 'empty'}: it must be {allowed}"
    assert caught.value.kafka_sentence.startswith(
        f"Invalid value {text} for configuration some.name: {kafka}"
    )


def test_a_number_out_of_bounds_is_told_with_the_bounds() -> None:
    size = setting(INT, Bounds(1 << 20), "log.segment.bytes")
    with pytest.raises(ConfigError, match=r"log.segment.bytes is 12: it must be at least 1048576"):
        size.parse("12")
    with pytest.raises(ConfigError, match=r"\(1 MiB\)$"):
        size.parse("12")
    level = setting(INT, Bounds(1, 9, also=(-1,)))
    assert level.parse("-1") == -1
    for text in ("0", "10"):
        with pytest.raises(ConfigError, match=f"is {text}: it must be from 1 to 9 or -1"):
            level.parse(text)


def test_bounds_are_told_as_kafka_writes_them() -> None:
    assert str(Bounds(0)) == "[0,...]"
    assert str(Bounds(1, 9, also=(-1,))) == "[1,...,9] or -1"
    assert str(OneOf("a", "b")) == "[a, b]"
    assert str(OneOf("a", any_case=True)) == "(case insensitive) [a]"


def test_a_word_must_be_one_of_the_known_and_a_list_has_each_once() -> None:
    assert setting(STRING, OneOf("A", "B", any_case=True)).parse("b") == "b"
    assert setting(LIST, OneOf("a", "b")).parse("b,a") == ("b", "a")
    with pytest.raises(ConfigError, match=r"some.name is c: it must be one of a, b"):
        setting(STRING, OneOf("a", "b")).parse("c")
    with pytest.raises(ConfigError, match=r"some.name is a,c: it must be some of a, b"):
        setting(LIST, OneOf("a", "b")).parse("a,c")
    with pytest.raises(ConfigError, match=r"without the same value twice"):
        setting(LIST, OneOf("a", "b")).parse("a,a")


def test_a_pattern_holds_for_each_item_of_a_list() -> None:
    pairs = setting(LIST, Matching(r"\d:\d", "pairs", "must be pairs"))
    assert pairs.parse("1:2,3:4") == ("1:2", "3:4")
    with pytest.raises(BadValue) as caught:
        pairs.parse("1:2,3")
    assert caught.value.kafka_sentence.endswith("some.name: some.name must be pairs")


def test_a_secret_is_never_printed() -> None:
    secret = setting(PASSWORD).parse("hunter2")
    assert repr(secret) == to_print(secret) == "[hidden]"
    assert setting(PASSWORD).is_sensitive


@pytest.mark.parametrize(
    ("value", "text", "printed"),
    [
        (None, None, "null"),
        (True, "true", "true"),
        (("a", "b"), "a,b", "[a, b]"),
        ((), "", "[]"),
        ("", "", ""),
        (5, "5", "5"),
        (1.7976931348623157e308, "1.7976931348623157E308", "1.7976931348623157E308"),
    ],
)
def test_values_are_written_for_clients_and_for_people(
    value: Value, text: str | None, printed: str
) -> None:
    assert to_text(value) == text
    assert to_print(value) == printed


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (1234567.0, "1234567.0"),
        (10000000.0, "1.0E7"),
        (12345678.25, "1.234567825E7"),
        (2147483647.0, "2.147483647E9"),
        (0.001, "0.001"),
        (0.0005, "5.0E-4"),
        (1.25e-5, "1.25E-5"),
        (1e22, "1.0E22"),
        (-0.00025, "-2.5E-4"),
    ],
)
def test_doubles_are_written_as_java_writes_them(number: float, text: str) -> None:
    assert java_double(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_written_as_java_does_reads_back(number: float) -> None:
    text = java_double(number)
    assert float(text) == number
    mantissa = text.lstrip("-").partition("E")[0]
    assert len(mantissa.partition(".")[0]) == 1 or "E" not in text
    assert math.isclose(number, float(text))


def test_a_table_parses_what_it_knows_and_refuses_the_rest() -> None:
    table = SettingTable([setting(INT)])
    assert table.parse({"some.name": "3"}) == {"some.name": 3}
    with pytest.raises(ConfigError, match=r"other is not a setting"):
        table.parse({"other": "3"})


def test_attribute_names_are_snake_case() -> None:
    assert attribute_name("log.dirs") == "log_dirs"
    assert attribute_name("zookeeper.clientCnxnSocket") == "zookeeper_client_cnxn_socket"


def test_reading_a_configuration_needs_no_heavy_module() -> None:
    # Import time is start-up time: a broker answers within half a second of its start.
    code = (
        "import sys, penstock.config.broker, penstock.config.topic;"
        "print([m for m in ('asyncio', 'dataclasses', 'socket', 'ssl', 'difflib', 'inspect')"
        " if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
