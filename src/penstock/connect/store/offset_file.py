"""Offsets of a standalone worker: one file, written whole and put in place of the last.

Apache's worker reads it and writes the same. Two workers must not share a file.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from penstock.connect.store.config_records import LogEntry
from penstock.connect.store.java_map import decode_map, encode_map
from penstock.connect.store.json_text import DamagedEntry
from penstock.errors import ConfigError


class OffsetFile:
    """What is in the file, and what is put there; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries = _read(path)

    def records(self) -> list[LogEntry]:
        """All that is known."""
        return [LogEntry(key, value) for key, value in self._entries.items()]

    def put(self, records: Iterable[LogEntry]) -> None:
        """Keep these, on the disk before it returns; a null forgets."""
        merged = {**self._entries, **dict(records)}
        merged = {key: value for key, value in merged.items() if value is not None}
        beside = self._path.with_name(f"{self._path.name}.tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                file.write(encode_map(merged))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as error:
            raise ConfigError(f"The offsets cannot be written to {self._path}: {error}") from error
        self._entries = merged


def _read(path: Path) -> dict[bytes, bytes | None]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"The offsets in {path} cannot be read: {error}") from error
    if not content:
        return {}  # Apache's scripts touch the file first.
    try:
        return decode_map(content)
    except DamagedEntry as error:
        raise ConfigError(
            f"{path} is no file of offsets: {error}. Move it away, or correct"
            " offset.storage.file.filename."
        ) from error
