"""Files that are renamed already and will be removed after a delay.

The delay lets readers that came by name finish; those that hold a slice keep the file open anyway.
"""

from collections.abc import Iterable
from pathlib import Path


class DoomedFiles:
    """What goes, and when."""

    def __init__(self) -> None:
        self._due: list[tuple[int, Path]] = []

    def __len__(self) -> int:
        return len(self._due)

    def add(self, paths: Iterable[Path], due_ms: int) -> None:
        self._due += [(due_ms, path) for path in paths]

    def move_to(self, directory: Path) -> None:
        """The directory they are in has another name."""
        self._due = [(due_ms, directory / path.name) for due_ms, path in self._due]

    def remove_due(self, now_ms: int, *, count_max: int | None = None) -> int:
        """Remove what is due, or `count_max` of it; what cannot be removed is tried again."""
        due, self._due = self._due, []
        removed = 0
        for due_ms, path in due:
            if due_ms > now_ms or removed == count_max:
                self._due.append((due_ms, path))
                continue
            try:
                path.unlink(missing_ok=True)
                removed += 1
            except OSError:
                self._due.append((due_ms, path))
        return removed
