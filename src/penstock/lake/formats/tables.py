"""What all table formats have in common, and which module knows which format.

The commit (commit.py) and the sink are written against `LakeTable`; a format says how files become
data in one atomic step, and how it remembers which batches of which query it has.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from penstock.lake.spec import OWN_FOLDER, SPEC_FILE, STAGING, TableSpec
from penstock.lake.writing.files import DataFile
from penstock.lake.writing.layout import origin_of, query_tag


class LakeTable(Protocol):
    """One table, opened for its only writer."""

    def schema(self) -> pa.Schema | None:
        """The columns that rows bring; None: there is no table yet."""

    def committed(self, query_id: str) -> int:
        """The last batch of this query that the table has; -1 for none."""

    def evolve(self, target: pa.Schema) -> None:
        """Create the table, or give it these columns; doing it twice is doing it once."""

    def append(self, files: Sequence[DataFile], *, query_id: str, batch_id: int) -> None:
        """Make the files data and remember the batch, both or neither."""

    def compact(self) -> int:
        """Put small files together where there are many; how many files are gone by it."""

    def recover(self) -> None:
        """Finish what a writer that was killed had begun."""


def open_table(spec: TableSpec) -> LakeTable:
    """The table; a format's libraries are imported only if it is used."""
    if spec.format == "delta":
        from penstock.lake.formats.delta import DeltaLakeTable

        return DeltaLakeTable(spec)
    if spec.format == "iceberg":
        from penstock.lake.formats.iceberg import IcebergLakeTable

        return IcebergLakeTable(spec)
    from penstock.lake.formats.parquet import ParquetLakeTable

    return ParquetLakeTable(spec)


def remove_leftovers(spec: TableSpec, table: LakeTable, query_id: str) -> int:
    """Delete files of batches this query never committed; how many there were.

    Only a batch after the last committed one can have been cut short, and while the query is
    not running nobody else writes files with its tag. What waits aside, once the table is
    recovered, is of attempts that were killed, or was merged already.
    """
    tag, last = query_tag(query_id), table.committed(query_id)
    gone = 0
    for folder in Path(spec.directory, STAGING).glob(f"{tag}-*"):
        gone += sum(1 for file in folder.rglob("part-*") if file.is_file())
        shutil.rmtree(folder)
    for file in Path(spec.directory).rglob("part-*"):
        origin = origin_of(file.name)
        if origin is not None and origin.query == tag and origin.batch_id > last:
            file.unlink()
            gone += 1
    return gone


def remember_spec(spec: TableSpec) -> None:
    """Leave beside the table what it is, for tools that are given only the directory."""
    path = own_folder(spec) / SPEC_FILE
    fresh = path.with_suffix(".new")
    # How records are read and decoded is the query's affair, and may tell of credentials, as
    # may the properties of a catalog.
    fresh.touch(mode=0o600 if spec.catalog else 0o644)
    fresh.write_text(replace(spec, decoding=None).to_json())
    fresh.replace(path)


def own_folder(spec: TableSpec) -> Path:
    """Our own folder in the table's directory, made if need be."""
    folder = Path(spec.directory, OWN_FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
