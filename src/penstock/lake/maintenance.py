"""Looking after a table that nobody writes to at the moment: `penstock lake compact`."""

from dataclasses import replace
from pathlib import Path

from penstock.lake.errors import LakeError
from penstock.lake.query import local_directory
from penstock.lake.spec import OWN_FOLDER, SPEC_FILE, TableSpec
from penstock.lake.writing.commit import compact_now
from penstock.lake.writing.locks import WriterLock


def compact(directory: str | Path, *, small_files_max: int = 2) -> int:
    """Put the small files of a table together; how many files there are less.

    A running query does so itself and holds the table; then this is TableBusy.
    """
    spec = remembered_spec(directory)
    lock = WriterLock(spec)
    try:
        return compact_now(replace(spec, small_files_max=small_files_max))
    finally:
        lock.release()


def remembered_spec(directory: str | Path) -> TableSpec:
    """The spec of a table by its directory alone."""
    path = Path(local_directory(directory), OWN_FOLDER, SPEC_FILE)
    try:
        return TableSpec.from_json(path.read_text())
    except FileNotFoundError:
        raise LakeError(f"{directory} is not a table that penstock has written") from None
