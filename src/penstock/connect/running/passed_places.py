"""How far a source has come: the last place of each of its partitions, as offset records."""

from collections.abc import Mapping
from typing import Any, Protocol

from penstock.connect.errors.kinds import ConnectError
from penstock.connect.store.config_records import LogEntry
from penstock.connect.store.offset_records import encode_offset


class SourcePlace(Protocol):
    """A record, or a batch of columns, with the place in the source behind it."""

    @property
    def source_partition(self) -> Mapping[str, Any] | None: ...
    @property
    def source_offset(self) -> Mapping[str, Any] | None: ...


class PassedPlaces:
    """The last one of each source partition: only its offset is written, so only it is kept."""

    def __init__(self) -> None:
        self._last: dict[Any, SourcePlace] = {}
        self._partition: Mapping[str, Any] | None = None
        self._key: Any = None

    def add(self, record: SourcePlace) -> None:
        partition = record.source_partition
        if partition is None:
            return
        if partition is not self._partition:  # A task that has one partition keeps its object.
            self._partition, self._key = partition, _identity(partition)
        self._last[self._key] = record

    def notes(self, connector: str) -> list[LogEntry]:
        """The offset records."""
        found = [encode_source_offset(connector, record) for record in self._last.values()]
        return [note for note in found if note is not None]

    def clear(self) -> None:
        """They are kept."""
        self._last.clear()


def encode_source_offset(connector: str, record: SourcePlace) -> LogEntry | None:
    """The offset record behind a record; None for a source that keeps no position."""
    partition, offset = record.source_partition, record.source_offset
    if partition is None:
        return None
    _check_flat(partition, "partition")
    if offset is not None:
        _check_flat(offset, "offset")
    return encode_offset(connector, partition, offset)


def _identity(partition: Mapping[str, Any]) -> Any:
    """What two equal partitions share; ConnectError for one that cannot be kept."""
    try:
        # With its type, for Python takes 1 and True for the same.
        return frozenset((name, type(value), value) for name, value in partition.items())
    except TypeError:
        _check_flat(partition, "partition")
        raise


def _check_flat(found: Mapping[str, Any], what: str) -> None:
    for key, value in found.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float | bool | None):
            raise ConnectError(
                f"The source {what} has {key!r}: {value!r}; only texts, numbers and booleans can be"
                " kept."
            )
