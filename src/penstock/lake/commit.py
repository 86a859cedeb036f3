"""The driver's part of a batch: the workers' files become data, once.

Replays come here too, after a crash between the table's commit and Spark's own: they are known by
the query's id and the batch id, and take nothing but their leftover files away.
"""

import base64
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from penstock.lake.errors import LakeError
from penstock.lake.files import (
    DataFile,
    described,
    no_space_explained,
    remove_files,
    rewrite,
)
from penstock.lake.layout import partition_types
from penstock.lake.locks import commit_lock
from penstock.lake.progress import remember_rows
from penstock.lake.schema import is_only_growth, unify, unify_all
from penstock.lake.spec import TableSpec
from penstock.lake.tables import LakeTable, open_table, own_folder

log = logging.getLogger("penstock.lake")


def commit_batch(
    spec: TableSpec, files: Sequence[DataFile], *, query_id: str, batch_id: int
) -> None:
    """Add the batch's files to the table, unless it has the batch already."""
    with commit_lock(spec), no_space_explained(spec.directory):
        table = open_table(spec)
        table.recover()
        if table.committed(query_id) >= batch_id:
            remove_files(Path(spec.directory), [file.path for file in files])
            return
        _check_all_there(spec, files)
        files = _evolve(spec, table, files)
        if table.schema() is not None:
            table.append(files, query_id=query_id, batch_id=batch_id)
            remember_rows(spec, batch_id, sum(file.rows for file in files))
        if spec.merge is not None:
            remove_files(Path(spec.directory), [file.path for file in files])
        if spec.compact_small_files and (batch_id + 1) % spec.small_files_max == 0:
            _compact(table, spec)


def discard_batch(
    spec: TableSpec, files: Sequence[DataFile], *, query_id: str, batch_id: int
) -> None:
    """Take the files of a failed batch away, if it really failed."""
    with commit_lock(spec):
        table = open_table(spec)
        table.recover()
        if table.committed(query_id) < batch_id:
            remove_files(Path(spec.directory), [file.path for file in files])


def compact_now(spec: TableSpec) -> int:
    """Put small files together now; how many files are gone by it."""
    with commit_lock(spec), no_space_explained(spec.directory):
        table = open_table(spec)
        table.recover()
        return table.compact()


def known_schema(spec: TableSpec) -> pa.Schema | None:
    """What the last commit knew of the table's columns; the tasks write towards it.

    It only saves work: a task that knew less has its file adapted by the commit.
    """
    path = _schema_file(spec)
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def remember_schema(spec: TableSpec, schema: pa.Schema) -> None:
    """Tell the tasks of the next batches the table's columns."""
    path = _schema_file(spec)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(base64.b64encode(schema.serialize().to_pybytes()))
    fresh.replace(path)


def _schema_file(spec: TableSpec) -> Path:
    return own_folder(spec) / "schema.arrow"


def _check_all_there(spec: TableSpec, files: Sequence[DataFile]) -> None:
    """A driver that is thought dead may come late: its successor has removed its files."""
    for file in files:
        path = Path(spec.directory, file.path)
        if not path.exists() or path.stat().st_size != file.size_bytes:
            raise LakeError(
                f"{path} is gone or changed since it was written; another writer of this table "
                "has taken over"
            )


def _evolve(spec: TableSpec, table: LakeTable, files: Sequence[DataFile]) -> Sequence[DataFile]:
    """Bring the table and the files to the same columns."""
    if not files:
        return files
    have = table.schema()
    brought = unify_all(file.arrow_schema() for file in files)
    target = brought if have is None else unify(have, brought)
    if have is None or not target.equals(have):
        partition_types(target, spec.partition_by)
        table.evolve(target)
    agreed = table.schema()
    assert agreed is not None
    if (known := known_schema(spec)) is None or not known.equals(agreed):
        remember_schema(spec, agreed)
    return [_fitted(spec, file, agreed) for file in files]


def _fitted(spec: TableSpec, file: DataFile, schema: pa.Schema) -> DataFile:
    """The file in the table's types; a file that only lacks columns is fine as it is."""
    if is_only_growth(file.arrow_schema(), schema):
        return file
    old = Path(spec.directory, file.path)
    fresh = old.with_name(f"{old.name}.wide")
    rewrite(spec, [old], fresh, schema, of_table=False)
    fresh.replace(old)
    wide = described(spec, file.path, file.place, file.values, schema)
    return replace(wide, place=file.place)


def _compact(table: LakeTable, spec: TableSpec) -> None:
    """The batch is committed; what goes wrong here must not undo that, so it is only told."""
    try:
        gone = table.compact()
    except Exception:
        log.exception("the small files of %s could not be put together", spec.directory)
        return
    if gone:
        log.info("%s has %d files less after compaction", spec.directory, gone)
