"""One writer per table: a lock for as long as a query runs, and one around each commit.

The first keeps two queries from one table. The second covers the moments after a driver was
killed, when its last commit may still be running while the next driver starts.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from penstock.lake.errors import TableBusy
from penstock.lake.formats.tables import own_folder
from penstock.lake.spec import TableSpec


class WriterLock:
    """Held from the start of a query to its end; the kernel frees it if the process dies."""

    def __init__(self, spec: TableSpec) -> None:
        path = own_folder(spec) / "writer.lock"
        self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            raise TableBusy(spec.directory) from None

    def release(self) -> None:
        """Let the next writer in; a second call does nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextlib.contextmanager
def commit_lock(spec: TableSpec) -> Iterator[None]:
    """Nobody else looks at which batches there are while a batch is added."""
    path = own_folder(spec) / "commit.lock"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
