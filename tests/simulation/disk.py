"""The disk of a simulated machine: real files, and the memory of what was flushed.

Files live in a directory of memory. While a simulation runs, flushes, renames and deletions are
watched, so that a power cut can take away what an operating system may take away: bytes that were
written and not flushed, in part or whole, and renames whose directory was not flushed. A killed
process loses nothing, for its pages are the kernel's.

Each start of a broker gets a copy of the directory under another name, so that what is left of a
dead one can never touch the files of its successor.
"""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

_SECTOR = 512


class Disk:
    """One machine's. `durable` is what the platters hold, by path below the root."""

    def __init__(self, home: Path, rng: random.Random) -> None:
        self._home = home
        self._rng = rng
        self._generation = 0
        self.root = home / "0"
        self.root.mkdir(parents=True)
        self._durable: dict[str, bytes] = {}
        # Renames that a power cut may undo, by directory: new name, old name, what was replaced.
        self._unsure: dict[str, list[tuple[str, str, bytes | None]]] = {}
        self.power_cuts = 0
        self.lost_bytes = 0

    def survive_kill(self) -> Path:
        """The directory for the next process: everything written is there."""
        before = self.root
        self._generation += 1
        self.root = self._home / str(self._generation)
        shutil.copytree(before, self.root)
        return self.root

    def survive_power_cut(self) -> Path:
        """The directory for the next process: what was flushed, and some of the rest."""
        self.power_cuts += 1
        root = self.survive_kill()
        for _, renames in sorted(self._unsure.items()):
            for new, old, replaced in reversed(renames[self._rng.randint(0, len(renames)) :]):
                self._undo(root, new, old, replaced)
        self._unsure.clear()
        for path in sorted(root.rglob("*")):
            if path.is_file():
                self._tear(path, str(path.relative_to(root)))
        self._durable = {
            str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file()
        }
        return root

    def _undo(self, root: Path, new: str, old: str, replaced: bytes | None) -> None:
        if not (root / new).is_file() or (root / old).exists():
            return
        (root / new).rename(root / old)
        self._move(new, old)
        if replaced is not None:
            (root / new).write_bytes(replaced)
            self._durable[new] = replaced

    def _tear(self, path: Path, name: str) -> None:
        """Of what was not flushed any part may be missing, from a point on.

        Only a file that grows by appends is cut at any byte. What is smaller than a sector and
        written at once is there or is not.
        """
        written = path.read_bytes()
        durable = self._durable.get(name, b"")
        if written == durable:
            return
        step = 1 if name.endswith(".log") else _SECTOR
        same = _common_prefix(written, durable) // step * step
        cut = min(len(written), same + self._rng.randrange(0, len(written) - same + step, step))
        kind = self._rng.random()
        if kind < 0.3:
            left = durable
        elif kind < 0.85:
            left = written[:cut]
        else:  # The length was noted, the bytes were not.
            left = written[:cut] + bytes(min(_SECTOR, len(written) - cut))
        self.lost_bytes += max(0, len(written) - len(left))
        path.write_bytes(left)

    # What the watched calls report

    def note_sync(self, path: str) -> None:
        name = self._name(path)
        if name is None:
            return
        if os.path.isdir(path):  # noqa: PTH112 - called often
            self._unsure.pop(name, None)
            return
        with open(path, "rb") as file:  # noqa: PTH123 - called often
            self._durable[name] = file.read()

    def note_rename(self, old: str, new: str, replaced: bytes | None) -> None:
        old_name, new_name = self._name(old), self._name(new)
        if old_name is None or new_name is None:
            return
        replaced = self._durable.get(new_name, replaced)
        self._move(old_name, new_name)
        if os.path.isfile(new):  # noqa: PTH113
            directory = os.path.dirname(new_name) or "."  # noqa: PTH120
            self._unsure.setdefault(directory, []).append((new_name, old_name, replaced))

    def note_unlink(self, path: str) -> None:
        if (name := self._name(path)) is not None:
            self._durable.pop(name, None)

    def _move(self, old: str, new: str) -> None:
        """A file, or everything below a directory."""
        if old in self._durable:
            self._durable[new] = self._durable.pop(old)
        else:
            self._durable.pop(new, None)
        for name in [name for name in self._durable if name.startswith(old + "/")]:
            self._durable[new + name[len(old) :]] = self._durable.pop(name)

    def _name(self, path: str) -> str | None:
        root = str(self.root)
        if path == root:
            return "."
        return path[len(root) + 1 :] if path.startswith(root + "/") else None


class Disks:
    """Watches the calls of all machines; `install` once per run."""

    def __init__(self) -> None:
        self.disks: list[Disk] = []
        self.sync_count = 0

    def install(self) -> None:
        os.fsync = self._syncing(os.fsync)  # type: ignore[assignment]
        os.fdatasync = self._syncing(os.fdatasync)
        os.rename = self._renaming(os.rename)  # type: ignore[assignment]
        os.replace = self._renaming(os.replace)  # type: ignore[assignment]
        os.unlink = self._unlinking(os.unlink)  # type: ignore[assignment]

    def _syncing(self, real: Callable[..., None]) -> Callable[..., None]:
        """The flush itself is left out: memory has no platters."""

        def sync(fd: Any) -> None:
            number = fd if isinstance(fd, int) else fd.fileno()
            path = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
            self.sync_count += 1
            for disk in self.disks:
                disk.note_sync(path)

        return sync

    def _renaming(self, real: Callable[..., None]) -> Callable[..., None]:
        def rename(old: Any, new: Any, **options: Any) -> None:
            new_path = os.fspath(new)
            replaced = None
            if os.path.isfile(new_path):  # noqa: PTH113
                with open(new_path, "rb") as file:  # noqa: PTH123
                    replaced = file.read()
            real(old, new, **options)
            for disk in self.disks:
                disk.note_rename(os.fspath(old), new_path, replaced)

        return rename

    def _unlinking(self, real: Callable[..., None]) -> Callable[..., None]:
        def unlink(path: Any, **options: Any) -> None:
            real(path, **options)
            for disk in self.disks:
                disk.note_unlink(os.fspath(path))

        return unlink


def _common_prefix(one: bytes, other: bytes) -> int:
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle)
    return low
