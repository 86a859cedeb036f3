"""The driver's part of a batch: the workers' files become data, once.

Replays come here too, after a crash between the table's commit and Spark's own: they are known by
the query's id and the batch id, and take nothing but their leftover files away.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from penstock.lake.columns.agreement import (
    agreed_columns,
    forget_agreement,
    known_columns,
    remember_columns,
)
from penstock.lake.columns.rules import AgreedColumns
from penstock.lake.columns.schema import is_only_growth, unify, unify_all
from penstock.lake.errors import IncompatibleSchema, LakeError
from penstock.lake.formats.tables import LakeTable, open_table
from penstock.lake.progress import remember_rows
from penstock.lake.spec import TableSpec
from penstock.lake.writing.files import (
    DataFile,
    described,
    no_space_explained,
    remove_files,
    rewrite,
)
from penstock.lake.writing.layout import partition_types
from penstock.lake.writing.locks import commit_lock

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
        agreed = agreed_columns(spec, query_id, batch_id)
        try:
            files = _evolve(spec, table, files, agreed)
        except IncompatibleSchema as refused:
            _learn(spec, refused)
            forget_agreement(spec, query_id, batch_id)
            raise
        if table.schema() is not None:
            table.append(files, query_id=query_id, batch_id=batch_id)
            remember_rows(spec, batch_id, sum(file.rows for file in files))
        forget_agreement(spec, query_id, batch_id)
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


def refresh_columns(spec: TableSpec, table: LakeTable) -> None:
    """Tell the tasks what the table has now: a killed commit may have changed it, or its owner."""
    schema = table.schema()
    if schema is not None:
        remember_columns(spec, AgreedColumns(schema=schema, exact=known_columns(spec).exact))


def _check_all_there(spec: TableSpec, files: Sequence[DataFile]) -> None:
    """A driver that is thought dead may come late: its successor has removed its files."""
    for file in files:
        path = Path(spec.directory, file.path)
        if not path.exists() or path.stat().st_size != file.size_bytes:
            raise LakeError(
                f"{path} is gone or changed since it was written; another writer of this table "
                "has taken over"
            )


def _learn(spec: TableSpec, refused: IncompatibleSchema) -> None:
    """A column whose old numbers do not fit a wider type: the tasks are not to try that again."""
    if refused.new == str(pa.float64()) and refused.old == str(pa.int64()):
        known = known_columns(spec)
        exact = known.exact | {(refused.column,)}
        remember_columns(spec, AgreedColumns(schema=known.schema, exact=exact))


def _evolve(
    spec: TableSpec, table: LakeTable, files: Sequence[DataFile], agreed: AgreedColumns
) -> Sequence[DataFile]:
    """Bring the table and the files to the same columns."""
    if not files:
        return files
    have = table.schema()
    brought = unify_all(file.arrow_schema() for file in files)
    target = brought if have is None else unify(have, brought)
    if have is None or not target.equals(have):
        partition_types(target, spec.partition_by)
        table.evolve(target)
    now = table.schema()
    assert now is not None
    exact = known_columns(spec).exact | agreed.exact
    remember_columns(spec, AgreedColumns(schema=now, exact=exact))
    return [_fitted(spec, file, now) for file in files]


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
