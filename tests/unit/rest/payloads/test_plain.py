"""Base64, JSON and text: what comes back is what was sent, and what is none of them is told."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.rest.payloads.formats import EmbeddedFormat
from penstock.rest.payloads.plain import DECODERS, ENCODERS, dump_json, load_json
from penstock.schemas.errors import DecodeError, EncodeError

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.binary())
def test_binary_goes_round_with_padding_and_without(data: bytes) -> None:
    encode, decode = ENCODERS[EmbeddedFormat.BINARY], DECODERS[EmbeddedFormat.BINARY]
    assert encode(decode(data)) == data
    assert encode(base64.b64encode(data).decode().rstrip("=")) == data


@given(VALUES)
def test_json_goes_round_with_every_digit(value: Any) -> None:
    data = ENCODERS[EmbeddedFormat.JSON](value)
    assert DECODERS[EmbeddedFormat.JSON](data) == value
    assert data is None or json.loads(data) == value


@given(VALUES)
def test_documents_are_read_as_the_standard_library_reads_them(value: Any) -> None:
    text = json.dumps(value).encode()
    assert load_json(text) == value
    assert json.loads(dump_json(value)) == value


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_goes_round(text: str) -> None:
    data = ENCODERS[EmbeddedFormat.STRING](text)
    assert DECODERS[EmbeddedFormat.STRING](data) == text


@pytest.mark.parametrize("format_", ENCODERS)
def test_null_is_nothing_in_every_format(format_: EmbeddedFormat) -> None:
    assert ENCODERS[format_](None) is None
    assert DECODERS[format_](None) is None


@pytest.mark.parametrize(
    ("format_", "value"),
    [
        (EmbeddedFormat.BINARY, "a b"),
        (EmbeddedFormat.BINARY, "A"),
        (EmbeddedFormat.BINARY, "QUJD="),
        (EmbeddedFormat.BINARY, "é"),
        (EmbeddedFormat.BINARY, 5),
        (EmbeddedFormat.BINARY, ["QUJD"]),
        (EmbeddedFormat.JSON, "\ud800"),
        (EmbeddedFormat.JSON, {"\ud800": 1}),
        (EmbeddedFormat.STRING, "\ud800"),
        (EmbeddedFormat.STRING, {"a": 1}),
        (EmbeddedFormat.STRING, 1.5),
    ],
)
def test_what_cannot_be_written_is_told(format_: EmbeddedFormat, value: Any) -> None:
    with pytest.raises(EncodeError):
        ENCODERS[format_](value)


@pytest.mark.parametrize("data", [b"", b"{", b"NaN", b"\xff", b"1" * 20 + b"x", b"[" * 100_000])
def test_bytes_that_are_not_json_are_told(data: bytes) -> None:
    with pytest.raises(DecodeError):
        DECODERS[EmbeddedFormat.JSON](data)


def test_bytes_that_are_not_text_are_told() -> None:
    with pytest.raises(DecodeError):
        DECODERS[EmbeddedFormat.STRING](b"\xff")
