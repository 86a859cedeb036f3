"""Headers of records: given as a mapping or as pairs, read by name or in order.

Kafka allows a name twice and keeps the order, which a dict cannot. So a record's headers are a
tuple of pairs that also answers to names; of a name that is there twice, the last one counts.
"""

from collections.abc import Mapping, Sequence
from typing import SupportsIndex, TypeAlias, overload

Header: TypeAlias = tuple[str, bytes | None]
Headers: TypeAlias = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]


class RecordHeaders(tuple[Header, ...]):
    """The headers of a record, in order: `headers["trace"]`, `headers.get("trace")`.

    Iterating gives pairs of name and value; `dict(headers)` has each name once.
    """

    __slots__ = ()

    @overload
    def __getitem__(self, at: str, /) -> bytes | None: ...
    @overload
    def __getitem__(self, at: SupportsIndex, /) -> Header: ...
    @overload
    def __getitem__(self, at: slice, /) -> tuple[Header, ...]: ...
    def __getitem__(
        self, at: str | SupportsIndex | slice, /
    ) -> bytes | Header | tuple[Header, ...] | None:
        if not isinstance(at, str):
            return super().__getitem__(at)
        for name, value in reversed(self):
            if name == at:
                return value
        raise KeyError(at)

    def __contains__(self, wanted: object, /) -> bool:
        if isinstance(wanted, str):
            return any(name == wanted for name, _ in self)
        return super().__contains__(wanted)

    def get(self, name: str, default: bytes | None = None) -> bytes | None:
        """The last value of a name, or the default where there is no such header."""
        found = self.get_all(name)
        return found[-1] if found else default

    def get_all(self, name: str) -> list[bytes | None]:
        """Every value of a name, in order."""
        return [value for each, value in self if each == name]


NO_HEADERS = RecordHeaders()


def record_headers(given: Headers) -> RecordHeaders:
    """Headers as a record has them; text becomes UTF-8."""
    if isinstance(given, RecordHeaders):
        return given
    if isinstance(given, str | bytes):
        raise TypeError(f"headers are a mapping or pairs, not {type(given).__name__}")
    pairs = given.items() if isinstance(given, Mapping) else given
    return RecordHeaders((name, _checked(name, value)) for name, value in pairs)


def _checked(name: object, value: object) -> bytes | None:
    if not isinstance(name, str):
        raise TypeError(f"the name of a header is text, not {type(name).__name__}")
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"the header {name} is a {type(value).__name__}; give bytes, str or None")
