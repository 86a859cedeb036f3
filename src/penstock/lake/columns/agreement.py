"""The columns that all tasks of a batch write towards, agreed on while they write.

A new field may come up in two tasks at once, a number in one and a string in the other. The first
one decides: whoever meets a new field or a wider type writes that down here, under a lock, before a
row of it is kept, so that no file is written that the commit could not put beside the others.

A batch that is replayed sets the same records aside: if the table has the batch, it has all that
was agreed on; if not, nothing of the batch counts yet, and the next start agrees anew.
"""

import base64
import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from penstock.lake.columns.rules import (
    KEY_UNDECODED,
    RECORD_COLUMNS,
    UNDECODED,
    AgreedColumns,
    Rules,
    rules_of,
)
from penstock.lake.columns.schema import unify
from penstock.lake.errors import LakeError
from penstock.lake.formats.tables import own_folder
from penstock.lake.spec import TableSpec
from penstock.lake.writing.files import rows_schema
from penstock.lake.writing.layout import query_tag

_EXACT = b"penstock.exact"
_FOLDER = "agreed"


class Agreement:
    """What the tasks of one batch have agreed on."""

    def __init__(self, spec: TableSpec, *, query_id: str, batch_id: int) -> None:
        self._spec = spec
        known = known_columns(spec)
        self._known = AgreedColumns(schema=_of_values(spec, known.schema), exact=known.exact)
        self._file = _agreed_file(spec, query_id, batch_id)
        self.rules: Rules = rules_of(spec, self._known.schema)
        self.columns = self._known  # As far as this task knows; the others may be ahead.
        self._refresh()

    def admit(self, needed: Callable[[AgreedColumns], AgreedColumns]) -> None:
        """Let the columns become what `needed` says of them; it may raise, then all is as before.

        It is asked again, under the lock, with all that others have agreed on meanwhile.
        """
        wanted = needed(self.columns)
        if wanted is self.columns or wanted == self.columns:
            return
        with _locked(self._spec):
            self._refresh()
            wanted = needed(self.columns)
            if wanted != self.columns:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                _write(self._file, wanted)
                self.columns = wanted

    def _refresh(self) -> None:
        agreed = _read(self._file)
        if agreed is None:
            return
        with contextlib.suppress(LakeError):  # An agreement from before the table was changed.
            schema = unify(self._known.schema, agreed.schema)
            self.columns = AgreedColumns(schema=schema, exact=self._known.exact | agreed.exact)


def _of_values(spec: TableSpec, table: pa.Schema) -> pa.Schema:
    """Without the columns that every record has."""
    own = {*RECORD_COLUMNS, UNDECODED, KEY_UNDECODED}
    return pa.schema([one for one in rows_schema(spec, table) if one.name not in own])


def known_columns(spec: TableSpec) -> AgreedColumns:
    """What the last commit knew of the table's columns; the tasks begin with it."""
    return _read(_schema_file(spec)) or AgreedColumns()


def remember_columns(spec: TableSpec, columns: AgreedColumns) -> None:
    """Tell the tasks of the next batches the table's columns."""
    if known_columns(spec) != columns:
        _write(_schema_file(spec), columns)


def agreed_columns(spec: TableSpec, query_id: str, batch_id: int) -> AgreedColumns:
    """What the tasks of a batch have agreed on; empty if there was nothing to agree on."""
    return _read(_agreed_file(spec, query_id, batch_id)) or AgreedColumns()


def forget_agreement(spec: TableSpec, query_id: str, batch_id: int) -> None:
    """Forget a batch's agreement: the batch was committed, or is tried again."""
    _agreed_file(spec, query_id, batch_id).unlink(missing_ok=True)


def forget_agreements(spec: TableSpec) -> None:
    """Forget all agreements when a query starts: the table has the columns that count."""
    shutil.rmtree(own_folder(spec) / _FOLDER, ignore_errors=True)


def _schema_file(spec: TableSpec) -> Path:
    return own_folder(spec) / "schema.arrow"


def _agreed_file(spec: TableSpec, query_id: str, batch_id: int) -> Path:
    return own_folder(spec) / _FOLDER / f"{query_tag(query_id)}-{batch_id:010d}.arrow"


def _read(path: Path) -> AgreedColumns | None:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
    marks = json.loads((schema.metadata or {}).get(_EXACT, b"[]"))
    return AgreedColumns(schema=schema.remove_metadata(), exact=frozenset(map(tuple, marks)))


def _write(path: Path, columns: AgreedColumns) -> None:
    marks = json.dumps(sorted(columns.exact)).encode()
    schema = columns.schema.with_metadata({_EXACT: marks} if columns.exact else None)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(base64.b64encode(schema.serialize().to_pybytes()))
    fresh.replace(path)


@contextlib.contextmanager
def _locked(spec: TableSpec) -> Iterator[None]:
    """One task at a time; the kernel frees it if the process dies."""
    file = os.open(own_folder(spec) / "agreed.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
