"""Texts, and bytes where a function takes both: parts, cases, padding, joining, splitting."""

import hashlib
import re
from typing import Any, Final

from penstock.sql.functions.catalogue import Catalogue

catalogue = Catalogue("STRING")
TEXT_CHARACTERS_MAX: Final = 10_000_000  # Of one result: a length comes from a row.
_BLANKS: Final = "".join(chr(code) for code in range(33))  # What Java's trim takes away.
_ESCAPES: Final = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")


@catalogue.scalar("LCASE", "(STRING) -> STRING", about="The text in lower case.")
def lower_case(text: str) -> str:
    return text.lower()


@catalogue.scalar("UCASE", "(STRING) -> STRING", about="The text in upper case.")
def upper_case(text: str) -> str:
    return text.upper()


@catalogue.scalar(
    "INITCAP",
    "(STRING) -> STRING",
    about="The text with the first letter of each word in upper case and the others in lower case.",
)
def initial_capitals(text: str) -> str:
    return re.sub(r"\S+", lambda word: word[0][0].upper() + word[0][1:].lower(), text)


@catalogue.scalar("TRIM", "(STRING) -> STRING", about="The text without blanks at its ends.")
def trim(text: str) -> str:
    return text.strip(_BLANKS)


@catalogue.scalar(
    "LEN",
    "(STRING) -> INTEGER",
    "(BYTES) -> INTEGER",
    about="The number of characters of a text, or of bytes.",
)
def length(value: Any) -> int:
    return len(value)


@catalogue.scalar(
    "SUBSTRING",
    "(STRING, INTEGER) -> STRING",
    "(STRING, INTEGER, INTEGER) -> STRING",
    "(BYTES, INTEGER) -> BYTES",
    "(BYTES, INTEGER, INTEGER) -> BYTES",
    about="A part from a position on, counted from 1, or from the end if it is negative.",
)
def substring(value: Any, position: int, length: int | None = None) -> Any:
    size = len(value)
    start = max(size + position, 0) if position < 0 else max(min(position - 1, size), 0)
    end = size if length is None else max(min(start + length, size), start)
    return value[start:end]


@catalogue.scalar(
    "REPLACE",
    "(STRING, STRING, STRING) -> STRING",
    about="The text with every occurrence of one text replaced by another.",
)
def replace(text: str, old: str, new: str) -> str:
    _bound(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


@catalogue.scalar(
    "CONCAT",
    "(STRING...) -> STRING",
    takes_nulls=True,
    about="Texts or bytes one after the other; NULL counts as empty.",
)
def concat(*values: str | None) -> str:
    return "".join(value for value in values if value is not None)


@catalogue.scalar("CONCAT", "(BYTES...) -> BYTES", takes_nulls=True)
def concat_bytes(*values: bytes | None) -> bytes:
    return b"".join(value for value in values if value is not None)


@catalogue.scalar(
    "CONCAT_WS",
    "(STRING, STRING, STRING...) -> STRING",
    "(BYTES, BYTES, BYTES...) -> BYTES",
    takes_nulls=True,
    about="Texts or bytes with a separator between them; NULLs are left out.",
)
def concat_with(separator: Any, *values: Any) -> Any:
    if separator is None:
        return None
    return separator.join(value for value in values if value is not None)


@catalogue.scalar(
    "LPAD",
    "(STRING, INTEGER, STRING) -> STRING",
    "(BYTES, INTEGER, BYTES) -> BYTES",
    about="Filled up or cut to a length, by padding on the left.",
)
def pad_left(value: Any, length: int, padding: Any) -> Any:
    if length < 0 or not padding:
        return None
    return _padding(padding, length - len(value)) + value[:length]


@catalogue.scalar(
    "RPAD",
    "(STRING, INTEGER, STRING) -> STRING",
    "(BYTES, INTEGER, BYTES) -> BYTES",
    about="Filled up or cut to a length, by padding on the right.",
)
def pad_right(value: Any, length: int, padding: Any) -> Any:
    if length < 0 or not padding:
        return None
    return value[:length] + _padding(padding, length - len(value))


def _padding(padding: Any, count: int) -> Any:
    _bound(count)
    return (padding * (max(count, 0) // len(padding) + 1))[: max(count, 0)]


def _bound(characters: int) -> None:
    if characters > TEXT_CHARACTERS_MAX:
        raise ValueError(f"a result of {characters} characters is too long")


@catalogue.scalar(
    "INSTR",
    "(STRING, STRING) -> INTEGER",
    "(STRING, STRING, INTEGER) -> INTEGER",
    "(STRING, STRING, INTEGER, INTEGER) -> INTEGER",
    about="Where a text lies in another, counted from 1; 0 if it does not.",
)
def position_of(text: str, part: str, position: int = 1, occurrence: int = 1) -> int:
    if position == 0 or occurrence < 1:
        return 0
    found = _forwards if position > 0 else _backwards
    return found(text, part, position, occurrence) + 1


def _forwards(text: str, part: str, position: int, occurrence: int) -> int:
    at = position - 2
    for _ in range(occurrence):
        if (at := text.find(part, at + 1)) < 0:
            return -1
    return at


def _backwards(text: str, part: str, position: int, occurrence: int) -> int:
    end = len(text) + position
    for _ in range(occurrence):
        if end < 0 or (found := text.rfind(part, 0, end + len(part))) < 0:
            return -1
        end = found - 1
    return found


@catalogue.scalar(
    "SPLIT",
    "(STRING, STRING) -> ARRAY<STRING>",
    about="The parts of a text or of bytes between delimiters; without one, each character.",
)
def split(text: str, delimiter: str) -> list[str]:
    return text.split(delimiter) if delimiter else list(text) or [""]


@catalogue.scalar("SPLIT", "(BYTES, BYTES) -> ARRAY<BYTES>")
def split_bytes(value: bytes, delimiter: bytes) -> list[bytes]:
    if delimiter:
        return value.split(delimiter)
    return [value[at : at + 1] for at in range(len(value))] or [b""]


@catalogue.scalar(
    "SPLIT_TO_MAP",
    "(STRING, STRING, STRING) -> MAP<STRING, STRING>",
    about="A map from a text of entries, each with a key and a value; the last of a key counts.",
)
def split_to_map(text: str, entry_delimiter: str, value_delimiter: str) -> dict[str, str] | None:
    if not entry_delimiter or not value_delimiter:
        return None
    pairs = (entry.partition(value_delimiter) for entry in text.split(entry_delimiter))
    return {key: value for key, sign, value in pairs if sign}


@catalogue.scalar(
    "CHR",
    "(INTEGER) -> STRING",
    about="The character of a code, or of its escape such as \\u004b.",
)
def character(code: int) -> str | None:
    is_valid = 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
    return chr(code) if is_valid else None


@catalogue.scalar("CHR", "(STRING) -> STRING")
def character_of_escape(escape: str) -> str | None:
    if not _ESCAPES.fullmatch(escape):
        return None
    units = bytes.fromhex(escape.replace("\\u", ""))
    try:
        found = units.decode("utf-16-be")
    except UnicodeDecodeError:
        return None
    return found if len(found) == 1 else None


@catalogue.scalar(
    "ELT",
    "(INTEGER, STRING...) -> STRING",
    takes_nulls=True,
    about="The n-th of the texts, counted from 1; NULL if there is none.",
)
def element(n: int | None, *values: str | None) -> str | None:
    return values[n - 1] if n is not None and 1 <= n <= len(values) else None


@catalogue.scalar(
    "FIELD",
    "(STRING, STRING...) -> INTEGER",
    takes_nulls=True,
    about="Which of the texts is equal to the first, counted from 1; 0 if none is.",
)
def field_number(text: str | None, *values: str | None) -> int:
    return values.index(text) + 1 if text is not None and text in values else 0


@catalogue.scalar("MD5", "(STRING) -> STRING", about="The MD5 hash of a text, in hex.")
def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
