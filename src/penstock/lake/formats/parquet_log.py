"""The commit log of a plain Parquet table: which files are data, and which batches are in.

Entries are JSON files numbered without gaps under `_penstock/log`; each appears by one rename.
Every now and then an entry holds the whole state, and those before it go. An entry is the commit:
what it says is true at once, and the files are then moved to where it says they are.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.lake.writing.files import DataFile

_WHOLE_EVERY = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedFile:
    """A file of the table, and where it was put before it got to its place."""

    place: str
    staged: str
    rows: int
    size_bytes: int
    values: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A partition's folder that was built anew, to change places with the old one.

    It has happened if `proof` is in the folder.
    """

    folder: str
    staged: str
    proof: str


@dataclass(slots=True, kw_only=True)
class TableState:
    """All entries up to one, taken together."""

    version: int = -1
    files: dict[str, LoggedFile] = field(default_factory=dict)  # By place.
    batches: dict[str, int] = field(default_factory=dict)  # The last one of each query.
    schema: str | None = None  # An Arrow schema, in base64.
    moves: list[LoggedFile] = field(default_factory=list)  # Of the last entry alone.
    exchanges: list[Exchange] = field(default_factory=list)  # Of the last entry alone.


class ParquetLog:
    def __init__(self, directory: Path) -> None:
        self._folder = directory / "_penstock" / "log"

    def read(self) -> TableState:
        """The state now; an empty one for a table that is not there yet."""
        state = TableState()
        for path in self._from_last_whole():
            _apply(state, json.loads(path.read_bytes()))
        return state

    def add(self, state: TableState, entry: Mapping[str, Any]) -> None:
        """Write the next entry and take it into the state; the caller holds the commit lock."""
        version = state.version + 1
        is_whole = version % _WHOLE_EVERY == _WHOLE_EVERY - 1
        _apply(state, {**entry, "version": version})
        self._write(version, _whole(state, entry) if is_whole else {**entry, "version": version})
        if is_whole:
            for path in self._entries():
                if _version(path) < version:
                    path.unlink()

    def _write(self, version: int, entry: Mapping[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        fresh = self._folder / f"{version:020d}.new"
        fresh.write_text(json.dumps(entry))
        fresh.replace(self._folder / f"{version:020d}.json")

    def _entries(self) -> list[Path]:
        return sorted(self._folder.glob("*.json"))

    def _from_last_whole(self) -> list[Path]:
        entries = self._entries()
        for at in range(len(entries) - 1, -1, -1):
            if (_version(entries[at]) + 1) % _WHOLE_EVERY == 0:
                return entries[at:]
        return entries


def entry_of(
    *,
    add: Iterable[LoggedFile] = (),
    remove: Iterable[str] = (),
    exchanges: Iterable[Exchange] = (),
    batch: tuple[str, int] | None = None,
    schema: str | None = None,
) -> dict[str, Any]:
    """An entry as it is written; `moves` is what is done with files after it counts."""
    return {
        "add": [_fields(file) for file in add],
        "remove": list(remove),
        "exchanges": [_fields(one) for one in exchanges],
        "batch": list(batch) if batch else None,
        "schema": schema,
    }


def logged(file: DataFile) -> LoggedFile:
    return LoggedFile(
        place=file.place,
        staged=file.path,
        rows=file.rows,
        size_bytes=file.size_bytes,
        values=file.values,
    )


def _apply(state: TableState, entry: Mapping[str, Any]) -> None:
    state.version = entry["version"]
    if "whole" in entry:
        state.files = {one["place"]: _file(one) for one in entry["whole"]}
        state.batches = dict(entry["batches"])
        state.schema = entry["schema"]
    added = [_file(one) for one in entry["add"]]
    for place in entry["remove"]:
        state.files.pop(place, None)
    state.files.update({file.place: file for file in added})
    if entry["batch"]:
        state.batches[entry["batch"][0]] = entry["batch"][1]
    state.schema = entry["schema"] or state.schema
    state.moves = added
    state.exchanges = [Exchange(**one) for one in entry["exchanges"]]


def _whole(state: TableState, entry: Mapping[str, Any]) -> dict[str, Any]:
    whole = [_fields(file) for file in state.files.values()]
    return {
        **entry,
        "version": state.version,
        "whole": whole,
        "batches": state.batches,
        "schema": state.schema,
    }


def _file(fields: Mapping[str, Any]) -> LoggedFile:
    return LoggedFile(**{**fields, "values": tuple(fields["values"])})


def _fields(value: LoggedFile | Exchange) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def _version(path: Path) -> int:
    return int(path.stem)
