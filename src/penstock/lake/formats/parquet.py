"""Plain Parquet tables: files in Hive-style folders that any engine reads, with a log of ours.

The tasks' files wait aside until the log entry of their batch is written; then each is moved into
its folder by a rename. So a reader of the folders sees each row once or not yet, whatever is killed
when: what an entry says and a kill has kept from being done is done by the next writer. Small files
are put together in a copy of their folder, which then changes places with it in one step.
"""

import base64
import ctypes
import os
import shutil
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from penstock.lake.columns.schema import is_only_growth
from penstock.lake.formats.parquet_log import (
    Exchange,
    LoggedFile,
    ParquetLog,
    TableState,
    entry_of,
    logged,
)
from penstock.lake.spec import TableSpec
from penstock.lake.writing.files import DataFile, rewrite, table_folder

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


class ParquetLakeTable:
    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec
        self._root = Path(spec.directory)
        self._log = ParquetLog(self._root)
        # Beside the table, for a search of the table's folders finds whatever ends in .parquet.
        self._work = f"../.{self._root.name}.rebuild-"
        self._state = self._log.read()

    def schema(self) -> pa.Schema | None:
        text = self._state.schema
        return None if text is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))

    def committed(self, query_id: str) -> int:
        return self._state.batches.get(query_id, -1)

    def evolve(self, target: pa.Schema) -> None:
        have = self.schema()
        if have is not None and have.equals(target):
            return
        text = base64.b64encode(target.serialize().to_pybytes()).decode()
        if have is None or is_only_growth(have, target):
            self._commit(entry_of(schema=text))
        else:
            self._rebuild(_by_folder(self._spec, self._state.files.values()), target, text)

    def append(self, files: Sequence[DataFile], *, query_id: str, batch_id: int) -> None:
        self._commit(entry_of(add=map(logged, files), batch=(query_id, batch_id)))

    def compact(self) -> int:
        before = len(self._state.files)
        small = [f for f in self._state.files.values() if self._is_small(f)]
        crowded = {
            folder: files
            for folder, files in _by_folder(self._spec, small).items()
            if len(files) > self._spec.small_files_max
        }
        schema = self.schema()
        if crowded and schema is not None:
            self._rebuild(crowded, schema, None)
        return before - len(self._state.files)

    def recover(self) -> None:
        """Do what the last entry says, if its writer was killed before it could."""
        self._carry_out()
        for left in self._root.parent.glob(f"{Path(self._work).name}*"):
            shutil.rmtree(left)

    def files(self) -> list[Path]:
        """All data files, where they are at this moment."""
        return [_whereabouts(self._root, file) for file in self._state.files.values()]

    def _is_small(self, file: LoggedFile) -> bool:
        return file.size_bytes < self._spec.file_bytes_max // 2

    def _commit(self, entry: dict[str, object]) -> None:
        self._log.add(self._state, entry)
        self._carry_out()

    def _carry_out(self) -> None:
        for file in self._state.moves:
            staged, place = self._root / file.staged, self._root / file.place
            if staged != place and staged.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                staged.replace(place)
                _remove_empty(staged.parent, self._root)
        for exchange in self._state.exchanges:
            self._exchange(exchange)

    def _exchange(self, exchange: Exchange) -> None:
        folder, staged = self._root / exchange.folder, self._root / exchange.staged
        if not (folder / exchange.proof).exists():
            exchange_folders(folder, staged)
        shutil.rmtree(staged, ignore_errors=True)  # What it holds now is the old folder.

    def _rebuild(
        self, folders: dict[str, list[LoggedFile]], schema: pa.Schema, text: str | None
    ) -> None:
        """Put the files of each folder together in these columns; all folders in one entry."""
        work = f"{self._work}{uuid.uuid4().hex[:12]}"
        added, removed, exchanges = [], [], []
        for number, (folder, files) in enumerate(sorted(folders.items())):
            aside = f"{work}/{number}"
            fresh = self._rebuild_folder(folder, aside, files, schema)
            added.append(fresh)
            removed += [file.place for file in files]
            proof = Path(fresh.place).name
            exchanges.append(Exchange(folder=folder, staged=aside, proof=proof))
        self._commit(entry_of(add=added, remove=removed, exchanges=exchanges, schema=text))
        shutil.rmtree(self._root / work, ignore_errors=True)

    def _rebuild_folder(
        self, folder: str, aside: str, files: list[LoggedFile], schema: pa.Schema
    ) -> LoggedFile:
        """A new folder with one file for these, and the others of the old folder as they are."""
        name = f"whole-{uuid.uuid4().hex[:12]}.parquet"
        target = self._root / aside / name
        rewrite(self._spec, [self._root / file.place for file in files], target, schema)
        gone = {file.place for file in files}
        for file in self._state.files.values():
            if file.place not in gone and str(Path(file.place).parent) == folder:
                os.link(self._root / file.place, self._root / aside / Path(file.place).name)
        return LoggedFile(
            place=f"{folder}/{name}",
            staged=f"{folder}/{name}",  # It comes with its folder.
            rows=sum(file.rows for file in files),
            size_bytes=target.stat().st_size,
            values=files[0].values,
        )


def parquet_files(directory: str | Path) -> list[Path]:
    """The data files of a Parquet table by its log: exact even while it is being written to."""
    root = Path(directory)
    state: TableState = ParquetLog(root).read()
    return [_whereabouts(root, file) for file in state.files.values()]


def exchange_folders(one: Path, other: Path) -> None:
    """Let two folders change places in one step, so that no reader finds both or neither."""
    libc = ctypes.CDLL(None, use_errno=True)
    call = getattr(libc, "renameat2", None)
    if call is not None:
        done = call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
        if done == 0:
            return
    # A system or file system without it: for a moment, a reader finds the folder missing.
    aside = other.with_name(f"{other.name}.old")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def _by_folder(spec: TableSpec, files: Iterable[LoggedFile]) -> dict[str, list[LoggedFile]]:
    folders: dict[str, list[LoggedFile]] = {}
    for file in files:
        folders.setdefault(table_folder(spec, file.values), []).append(file)
    return folders


def _whereabouts(root: Path, file: LoggedFile) -> Path:
    """In its place; or still aside, in the moment between the commit and the move."""
    place = root / file.place
    staged = root / file.staged
    return staged if not place.exists() and staged.exists() else place


def _remove_empty(folder: Path, root: Path) -> None:
    while folder != root:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
