"""A folder of a local (or mounted) file system as an `ObjectStore`.

A file is written aside, brought to the disk and then given its name, so readers find whole files
alone. What a task that died left aside begins with a dot, and nobody reads it.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from penstock.connect.errors.kinds import ConnectError


class LocalStore:
    """Everything below one folder."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    def check(self) -> None:
        with _told(f"opening {self._root}"):
            self._root.mkdir(parents=True, exist_ok=True)

    def put(self, name: str, content: IO[bytes]) -> None:
        path = self._root / name
        aside = path.with_name(f".{path.name}.{os.getpid()}")
        content.seek(0)
        with _told(f"storing {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with aside.open("wb") as file:
                shutil.copyfileobj(content, file)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)

    def get(self, name: str) -> IO[bytes]:
        with _told(f"reading {name}"):
            return (self._root / name).open("rb")

    def folders(self, folder: str) -> Iterator[str]:
        yield folder
        with _told(f"listing {folder}"):
            inner = sorted(one.name for one in self._inside(folder) if one.is_dir())
        for name in inner:
            yield from self.folders(f"{folder}/{name}" if folder else name)

    def names(self, folder: str, after: str = "") -> Iterator[str]:
        with _told(f"listing {folder}"):
            files = sorted(one.name for one in self._inside(folder) if one.is_file())
        whole = (f"{folder}/{name}" if folder else name for name in files)
        return (name for name in whole if name > after)

    def close(self) -> None:
        return

    def _inside(self, folder: str) -> list[Path]:
        place = self._root / folder
        if not place.is_dir():
            return []
        return [one for one in place.iterdir() if not one.name.startswith((".", "_"))]


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConnectError(f"{what} failed: {error}") from error
