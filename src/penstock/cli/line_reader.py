"""Lines as records: `h1:v1,h2:v2<tab>key<tab>value`, with the separators a user chose."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.errors import CommandError


@dataclass(frozen=True, slots=True)
class LineRecord:
    """What a line says."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class LineReader:
    """Splits lines as Kafka's LineMessageReader does, with its properties and its complaints."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        known = {
            "parse.key": "false",
            "parse.headers": "false",
            "ignore.error": "false",
            "key.separator": "\t",
            "headers.delimiter": "\t",
            "headers.separator": ",",
            "headers.key.separator": ":",
            "null.marker": "",
        }
        unknown = sorted(set(properties) - set(known) - {"topic"})
        if unknown:
            raise CommandError(
                f"{unknown[0]} is not a property for reading lines: choose from {', '.join(known)}."
            )
        chosen = {**known, **properties}
        self._parse_key = _flag(chosen["parse.key"])
        self._parse_headers = _flag(chosen["parse.headers"])
        self._ignore_error = _flag(chosen["ignore.error"])
        self._key_separator = chosen["key.separator"].encode()
        self._headers_delimiter = chosen["headers.delimiter"].encode()
        self._headers_separator = chosen["headers.separator"].encode()
        self._headers_key_separator = chosen["headers.key.separator"].encode()
        self._null = chosen["null.marker"].encode() or None
        self._number = 0
        _check_distinct(chosen)

    def parse(self, line: bytes) -> LineRecord:
        """The record of the next line."""
        self._number += 1
        headers: tuple[tuple[str, bytes | None], ...] = ()
        key: bytes | None = None
        if self._parse_headers:
            text, line = self._split(line, self._headers_delimiter, "headers delimiter")
            headers = self._headers(text) if text is not None else ()
        if self._parse_key:
            key, line = self._split(line, self._key_separator, "key separator")
        return LineRecord(self._or_null(line), self._or_null(key), headers)

    def _split(self, line: bytes, separator: bytes, what: str) -> tuple[bytes | None, bytes]:
        before, found, after = line.partition(separator)
        if found:
            return before, after
        if self._ignore_error:
            return None, line
        raise CommandError(
            f"No {what} found on line number {self._number}: '{line.decode(errors='replace')}'"
        )

    def _headers(self, text: bytes) -> tuple[tuple[str, bytes | None], ...]:
        if text == self._null or not text:
            return ()
        pairs = []
        for pair in text.split(self._headers_separator):
            name, found, value = pair.partition(self._headers_key_separator)
            if not found and not self._ignore_error:
                shown = pair.decode(errors="replace")
                raise CommandError(
                    f"No header key separator found in pair '{shown}' on line number {self._number}"
                )
            if name == self._null:
                raise CommandError(f"Header keys should not be null (line {self._number})")
            pairs.append((name.decode(errors="replace"), self._or_null(value) if found else None))
        return tuple(pairs)

    def _or_null(self, field: bytes | None) -> bytes | None:
        return None if field == self._null else field


def _flag(text: str) -> bool:
    return text.strip().lower() == "true"


def _check_distinct(chosen: Mapping[str, str]) -> None:
    """Separators that are the same would make lines ambiguous."""
    if chosen["headers.delimiter"] == chosen["headers.separator"]:
        raise CommandError("headers.delimiter and headers.separator may not be equal")
    if chosen["headers.delimiter"] == chosen["headers.key.separator"]:
        raise CommandError("headers.delimiter and headers.key.separator may not be equal")
    if chosen["headers.separator"] == chosen["headers.key.separator"]:
        raise CommandError("headers.separator and headers.key.separator may not be equal")
    if chosen["null.marker"] and chosen["null.marker"] in (
        chosen["key.separator"],
        chosen["headers.separator"],
        chosen["headers.delimiter"],
        chosen["headers.key.separator"],
    ):
        raise CommandError("null.marker may not be equal to a separator or delimiter")
