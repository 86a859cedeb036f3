"""The producers of one log together with the snapshot files that keep them over a restart.

A snapshot is taken at every roll and at a clean stop. After a restart the newest one that is not
beyond the log's end is read, and the batches behind it are replayed by `recovery.py`. The rules
for a producer's batches are in `producers.py`, the bytes of a file in `snapshot.py`.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from penstock.errors import CorruptRecord
from penstock.storage.producers.producers import ProducerTable, is_expired
from penstock.storage.producers.snapshot import read_snapshot, snapshot_path, write_snapshot


class ProducerState:
    """`table` is what counts; the rest are files."""

    def __init__(self, directory: Path, snapshots: Iterable[int]) -> None:
        self.table = ProducerTable()
        self._directory = directory
        self._snapshots = set(snapshots)
        self._unsynced: set[int] = set()  # Written since the last flush.

    @property
    def snapshots(self) -> list[int]:
        """The offsets of the snapshot files, in order."""
        return sorted(self._snapshots)

    def move_to(self, directory: Path) -> None:
        self._directory = directory

    # Taking

    def take_snapshot(self) -> None:
        """Write the state at the table's end, unless that is known to a file already."""
        offset = self.table.end_offset
        if offset in self._snapshots:
            return
        write_snapshot(self._path(offset), self.table.entries.values())
        self._snapshots.add(offset)
        self._unsynced.add(offset)

    def unsynced_snapshots(self) -> list[Path]:
        return [self._path(offset) for offset in sorted(self._unsynced)]

    def note_synced(self, paths: Iterable[Path]) -> None:
        self._unsynced.difference_update(int(path.stem) for path in paths)

    # Loading

    def load(
        self,
        *,
        log_start_offset: int,
        snapshot_offset_max: int,
        now_ms: int,
        expiration_ms: int,
        report: Callable[[str], None],
    ) -> None:
        """Begin with the newest snapshot up to an offset; one that cannot be read is removed."""
        for offset in reversed(self.snapshots):
            if not log_start_offset < offset <= snapshot_offset_max:
                continue
            path = self._path(offset)
            try:
                entries = read_snapshot(path)
            except (CorruptRecord, OSError) as error:
                report(f"Producer snapshot {path} cannot be used and is removed: {error}")
                self.delete_snapshot(offset)
                continue
            live = [e for e in entries if not is_expired(e, now_ms, expiration_ms)]
            self.table.load(live, offset)
            return
        self.table.load([], log_start_offset)

    # Removing

    def remove_stray_snapshots(self, base_offsets: Iterable[int]) -> None:
        """Keep those at a segment's beginning, and one beyond, which a clean stop left."""
        bases = set(base_offsets)
        newest_base = max(bases, default=0)
        strays = [offset for offset in self.snapshots if offset not in bases]
        for offset in strays[:-1]:
            self.delete_snapshot(offset)
        if strays and strays[-1] < newest_base:
            self.delete_snapshot(strays[-1])

    def drop_outside(self, log_start_offset: int, end_offset: int) -> None:
        """Remove snapshots of offsets the log does not have, or no longer has."""
        for offset in self.snapshots:
            if offset > end_offset or offset <= log_start_offset:
                self.delete_snapshot(offset)

    def delete_snapshot(self, offset: int) -> None:
        if offset in self._snapshots:
            self.forget_snapshot(offset)
            self._path(offset).unlink(missing_ok=True)

    def forget_snapshot(self, offset: int) -> Path | None:
        """The file is somebody else's to delete; None: there is none of that offset."""
        if offset not in self._snapshots:
            return None
        self._snapshots.discard(offset)
        self._unsynced.discard(offset)
        return self._path(offset)

    def restart_at(self, offset: int) -> None:
        """Forget every producer and every file."""
        for known in self.snapshots:
            self.delete_snapshot(known)
        self.table.load([], offset)

    def move_log_start(self, offset: int) -> None:
        """Records before the offset are gone; what they said of producers still holds."""
        self.table.forget_completed(offset)
        self.table.end_offset = max(self.table.end_offset, offset)

    def _path(self, offset: int) -> Path:
        return snapshot_path(self._directory, offset)
