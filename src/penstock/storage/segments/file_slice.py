"""Open segment files, and pieces of them that can be sent without a copy.

A slice names bytes by file, position and size; whoever sends it decides between `sendfile` and
reading. A file stays open as long as a slice of it lives, so a segment may be deleted under a
reader. How many closed segments stay open is bounded here, since a broker has far more segments
than it may have open files.
"""

import os
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from penstock.errors import KafkaStorage

EMPTY = b""


class LogFile:
    """One open descriptor, closed when the last who uses it lets go."""

    __slots__ = ("__weakref__", "fd", "path")

    def __init__(self, path: str, flags: int) -> None:
        self.fd = -1  # Set first, so that a failed open leaves nothing to close.
        self.path = path
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # Bound early: at the interpreter's end the module may be gone before its objects.
        if self.fd >= 0:
            close(self.fd)

    def fileno(self) -> int:
        return self.fd


class FileSlice:
    """`size` bytes of a segment from `position` on."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: LogFile, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"FileSlice({self.file.path}, {self.position}, {self.size})"

    def fileno(self) -> int:
        return self.file.fd

    def read(self) -> bytes:
        return read_exactly(self.file.fd, self.position, self.size)


def read_exactly(fd: int, position: int, size: int) -> bytes:
    """Bytes that must be there; a file that ends earlier was truncated under its reader."""
    try:
        data = os.pread(fd, size, position)
        while len(data) < size:
            more = os.pread(fd, size - len(data), position + len(data))
            if not more:
                raise KafkaStorage(f"the file ends {size - len(data)} bytes too early")
            data += more
    except OSError as error:
        raise KafkaStorage(f"a segment cannot be read: {error.strerror}") from error
    return data


class OpenFiles:
    """The closed segments that stay open for reading: the most recently read."""

    def __init__(self, files_max: int) -> None:
        self._files_max = files_max
        self._files: OrderedDict[str, LogFile] = OrderedDict()
        self._lock = Lock()  # Recovery and cleaning read from threads of their own.

    def get(self, path: str) -> LogFile:
        with self._lock:
            file = self._files.get(path)
            if file is not None:
                self._files.move_to_end(path)
                return file
        return self.put(LogFile(path, os.O_RDONLY))

    def put(self, file: LogFile) -> LogFile:
        with self._lock:
            self._files[file.path] = file
            if len(self._files) > self._files_max:
                self._files.popitem(last=False)
        return file

    def forget(self, path: str) -> None:
        """The path means another file from now on, or none."""
        with self._lock:
            self._files.pop(path, None)

    def clear(self) -> None:
        """Keep none; whoever reads one now still can."""
        with self._lock:
            self._files.clear()


OPEN_FILES = OpenFiles(files_max=512)
