"""Small files that must survive a crash whole: replaced by a rename, and flushed.

A reader sees the old content or the new, never a mixture, even after a power cut.
"""

import errno
import os
from pathlib import Path


def replace_file(path: Path, text: str, *, is_synced: bool = True) -> None:
    """Put the text in the file's place and, unless a later flush does that, on the disk."""
    temporary = path.with_name(path.name + ".tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        data = text.encode()
        if os.write(fd, data) != len(data):
            raise OSError(errno.ENOSPC, "a file was written only in part", str(temporary))
        if is_synced:
            os.fsync(fd)
    finally:
        os.close(fd)
    temporary.replace(path)
    if is_synced:
        sync_directory(path.parent)


def sync_file(path: Path | str) -> None:
    """Bring to the disk what was written to a file, through whatever descriptor."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# A directory is flushed like a file; that is what makes new names and renames durable.
sync_directory = sync_file
