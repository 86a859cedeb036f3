"""The formats without a schema: base64, JSON and text, as bytes and back.

null is no key or no value, in every format, and stays null.
"""

import binascii
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

from penstock.rest.payloads.formats import EmbeddedFormat
from penstock.schemas.errors import DecodeError, EncodeError

Encode: TypeAlias = Callable[[Any], bytes | None]
Decode: TypeAlias = Callable[[bytes | None], Any]

_PRECISE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_ALL_DIGITS_NULL = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_LONG_NUMBER = b"0" * 19  # Whole numbers beyond 64 bits have at least as many digits.


def load_json(data: bytes) -> Any:
    """A document, with whole numbers of any length; ValueError or RecursionError tell why not."""
    if _LONG_NUMBER in data.translate(_ALL_DIGITS_NULL):  # orjson would round them.
        return json.loads(data, parse_constant=_refuse_constant)
    return orjson.loads(data)


def dump_json(value: object) -> bytes:
    """A document without spaces, with whole numbers of any length."""
    try:
        return orjson.dumps(value)
    except TypeError:  # A number beyond 64 bits, half of a character, or too deep.
        return _PRECISE(value).encode()


def encode_binary(value: Any) -> bytes | None:
    """The bytes that base64 stands for."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise EncodeError(f"binary data is base64 in a string, not {_kind(value)}")
    missing = -len(value) % 4  # The padding may be left out, but not be wrong.
    if missing and value.endswith("="):
        raise EncodeError("the data is not base64: Incorrect padding")
    try:
        return binascii.a2b_base64(value + "=" * missing, strict_mode=True)
    except ValueError as error:
        raise EncodeError(f"the data is not base64: {error}") from None


def encode_json(value: Any) -> bytes | None:
    """The value as JSON without spaces."""
    if value is None:
        return None
    try:
        return dump_json(value)
    except UnicodeEncodeError:
        raise EncodeError("the data has half of a character, which is no text") from None
    except (ValueError, RecursionError) as error:
        raise EncodeError(f"the data cannot be written as JSON: {error}") from None


def encode_string(value: Any) -> bytes | None:
    """The text in UTF-8."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise EncodeError(f"the data is a string here, not {_kind(value)}")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise EncodeError("the data has half of a character, which is no text") from None


def decode_binary(data: bytes | None) -> str | None:
    """Bytes in base64."""
    return None if data is None else b64encode(data).decode("ascii")


def decode_json(data: bytes | None) -> Any:
    """The JSON in the bytes."""
    if data is None:
        return None
    try:
        return load_json(data)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the bytes are not JSON: {error}") from None


def decode_string(data: bytes | None) -> str | None:
    """The text in the bytes."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"the bytes are not text in UTF-8: {error.reason}") from None


ENCODERS: dict[EmbeddedFormat, Encode] = {
    EmbeddedFormat.BINARY: encode_binary,
    EmbeddedFormat.JSON: encode_json,
    EmbeddedFormat.STRING: encode_string,
}
DECODERS: dict[EmbeddedFormat, Decode] = {
    EmbeddedFormat.BINARY: decode_binary,
    EmbeddedFormat.JSON: decode_json,
    EmbeddedFormat.STRING: decode_string,
}


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number in JSON")


def _kind(value: Any) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", list: "an array"}
    return names.get(type(value), "an object")
