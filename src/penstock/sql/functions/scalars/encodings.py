"""Bytes and texts in hex, UTF-8, ASCII and base64, and numbers in bytes."""

import base64
import binascii
import re
import struct
from collections.abc import Callable
from typing import Any, Final

from penstock.sql.functions.catalogue import Catalogue

catalogue = Catalogue("CONVERSIONS")
_ORDERS: Final = {"BIG_ENDIAN": ">", "LITTLE_ENDIAN": "<"}
_HEX: Final = re.compile(r"0[xX](?P<plain>[0-9a-fA-F]*)|[xX]'(?P<quoted>[0-9a-fA-F]*)'")


def _from_hex(text: str) -> bytes:
    found = _HEX.fullmatch(text)
    digits = text if found is None else found["plain"] or found["quoted"] or ""
    if found is not None and found["plain"] and len(digits) % 2:
        digits = f"0{digits}"
    try:
        return binascii.unhexlify(digits)
    except (binascii.Error, ValueError):
        raise ValueError(f"{text[:80]!r} is not hex") from None


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{text[:80]!r} is not base64") from None


_DECODERS: Final[dict[str, Callable[[str], bytes]]] = {
    "hex": _from_hex,
    "utf8": lambda text: text.encode("utf-8", "replace"),
    "ascii": lambda text: text.encode("ascii", "replace"),
    "base64": _from_base64,
}
_ENCODERS: Final[dict[str, Callable[[bytes], str]]] = {
    "hex": lambda value: value.hex(),
    "utf8": lambda value: value.decode("utf-8", "replace"),
    "ascii": lambda value: "".join(chr(b) if b < 128 else "\ufffd" for b in value),
    "base64": lambda value: base64.b64encode(value).decode(),
}


def _coder(coders: dict[str, Any], name: str) -> Any:
    if name.lower() not in coders:
        raise ValueError(f"Unknown encoding {name!r}: supported are hex, utf8, ascii and base64")
    return coders[name.lower()]


@catalogue.scalar(
    "ENCODE",
    "(STRING, STRING, STRING) -> STRING",
    about="A text in one encoding as the same in another: hex, utf8, ascii or base64.",
)
def encode(text: str, input_encoding: str, output_encoding: str) -> str:
    decode, write = _coder(_DECODERS, input_encoding), _coder(_ENCODERS, output_encoding)
    return str(write(decode(text)))


@catalogue.scalar(
    "TO_BYTES",
    "(STRING, STRING) -> BYTES",
    about="The bytes that a text stands for in an encoding: hex, utf8, ascii or base64.",
)
def to_bytes(text: str, encoding: str) -> bytes:
    return bytes(_coder(_DECODERS, encoding)(text))


@catalogue.scalar(
    "FROM_BYTES",
    "(BYTES, STRING) -> STRING",
    about="Bytes as a text in an encoding: hex, utf8, ascii or base64.",
)
def from_bytes(value: bytes, encoding: str) -> str:
    text = str(_coder(_ENCODERS, encoding)(value))
    return text.upper() if encoding.lower() == "hex" else text


def _declare(name: str, kind: str, form: str) -> None:
    size = struct.calcsize(f">{form}")

    def number(value: bytes, order: str = "BIG_ENDIAN") -> Any:
        if order not in _ORDERS:
            raise ValueError(f"byte order must be BIG_ENDIAN or LITTLE_ENDIAN, not {order}")
        if len(value) != size:
            raise ValueError(f"{size} bytes are needed, and {len(value)} came")
        return struct.unpack(f"{_ORDERS[order]}{form}", value)[0]

    catalogue.scalar(
        name, f"(BYTES) -> {kind}", f"(BYTES, STRING) -> {kind}",
        about=f"The {kind} that {size} bytes are, in BIG_ENDIAN or LITTLE_ENDIAN order.",
    )(number)  # fmt: skip


_declare("INT_FROM_BYTES", "INTEGER", "i")
_declare("BIGINT_FROM_BYTES", "BIGINT", "q")
_declare("DOUBLE_FROM_BYTES", "DOUBLE", "d")
