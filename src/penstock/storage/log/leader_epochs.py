"""At which offset each leader epoch began: what replicas compare to find where they part.

The history is kept in `leader-epoch-checkpoint` beside the segments, in the text format of
`checkpoints.py` with lines `epoch start-offset`. What is cut off is flushed at once. What is added
need not be, for thousands of partitions may get a new leader in one moment: it is written with the
log's next flush, and until then recovery finds it in the batches. An epoch without a batch may be
forgotten by a crash: nobody has a record of it, and whoever leads next begins a later one.
"""

from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from penstock.errors import CorruptRecord
from penstock.storage.directories.checkpoints import read_checkpoint, write_checkpoint

FILE_NAME: Final = "leader-epoch-checkpoint"
NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


class EpochStart(NamedTuple):
    """The first offset a leader of this epoch wrote, or would have written."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """Epochs and start offsets both grow from one entry to the next."""

    __slots__ = ("_saved", "entries", "is_synced", "latest", "path")

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME
        self.entries: tuple[EpochStart, ...] = ()
        self._saved: tuple[EpochStart, ...] = ()  # As the file has them.
        self.latest = NO_EPOCH
        self.is_synced = True

    def load(self) -> None:
        """Read the file; CorruptRecord if it is not whole, FileNotFoundError if there is none."""
        try:
            words = read_checkpoint(self.path)
            entries = [EpochStart(int(epoch), int(offset)) for epoch, offset in words]
        except ValueError as error:
            raise CorruptRecord(f"{self.path} has a line that is not epoch, offset") from error
        for before, after in pairwise(entries):
            if after.epoch <= before.epoch or after.start_offset < before.start_offset:
                raise CorruptRecord(f"{self.path} is not in order")
        self._saved = tuple(entries)
        self._set(self._saved)

    def move_to(self, directory: Path) -> None:
        self.path = directory / FILE_NAME

    # Changing; each of these writes the file first, so that a failure changes nothing.

    def assign(self, epoch: int, start_offset: int, *, is_synced: bool = True) -> None:
        """A leader of this epoch writes from this offset on; the file may wait for a flush."""
        if epoch <= self.latest:
            return
        entries = self.with_start(epoch, start_offset)
        if is_synced:
            self._save(entries)
        else:
            self._set(entries)

    def settle(self, end_offset: int) -> None:
        """Write the epochs of the records that are about to be flushed."""
        saved = self._saved
        entries = tuple(e for e in self.entries if e.start_offset < end_offset or e in saved)
        if entries != saved:
            self._write(entries, is_synced=False)

    def with_start(self, epoch: int, start_offset: int) -> tuple[EpochStart, ...]:
        """The history with one entry more; what it contradicts is dropped."""
        kept = [e for e in self.entries if e.epoch < epoch and e.start_offset < start_offset]
        return (*kept, EpochStart(epoch, start_offset))

    def truncate_from_end(self, end_offset: int) -> None:
        """The log ends at this offset now."""
        self._save(tuple(e for e in self.entries if e.start_offset < end_offset))

    def drop_after_end(self, end_offset: int) -> None:
        """Truncate while the log is opened; without a flush, as a crash would only repeat this."""
        self._set(tuple(e for e in self.entries if e.start_offset < end_offset))

    def truncate_from_start(self, start_offset: int) -> None:
        """The log begins at this offset now; the epoch it is in begins there too."""
        before = [e for e in self.entries if e.start_offset <= start_offset]
        if not before:
            return
        first = EpochStart(before[-1].epoch, start_offset)
        self._save((first, *self.entries[len(before) :]))

    def clear(self) -> None:
        self._save(())

    def restore(self, entries: tuple[EpochStart, ...]) -> None:
        """Go back to an older history after a failed append; the file may keep the newer one."""
        try:
            self._save(entries)
        except OSError:
            self._set(entries)

    def replace(self, entries: tuple[EpochStart, ...]) -> None:
        """Take on a history that was read from the batches."""
        self._save(entries)

    def _save(self, entries: tuple[EpochStart, ...]) -> None:
        if entries != self._saved:
            self._write(entries, is_synced=bool(self._saved))
        self._set(entries)

    def _write(self, entries: tuple[EpochStart, ...], *, is_synced: bool) -> None:
        lines = [f"{epoch} {start}" for epoch, start in entries]
        write_checkpoint(self.path, lines, is_synced=is_synced)
        self._saved = entries
        self.is_synced = is_synced

    def _set(self, entries: tuple[EpochStart, ...]) -> None:
        self.entries = entries
        self.latest = entries[-1].epoch if entries else NO_EPOCH

    # Asking

    @property
    def earliest(self) -> int:
        return self.entries[0].epoch if self.entries else NO_EPOCH

    def epoch_of(self, offset: int) -> int:
        """The epoch in which an offset was written; -1: before all that is known."""
        found = NO_EPOCH
        for epoch, start_offset in self.entries:
            if start_offset > offset:
                break
            found = epoch
        return found

    def start_of(self, epoch: int, log_end_offset: int) -> int:
        """Where the first epoch from `epoch` on began; the log's end, if there is none."""
        later = (e.start_offset for e in self.entries if e.epoch >= epoch)
        return next(later, log_end_offset)

    def end_of(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and where it ends; (-1, -1): unknown here.

        An epoch newer than all we know is unknown: this replica may be the one that is behind.
        """
        if epoch == self.latest and epoch != NO_EPOCH:
            return epoch, log_end_offset
        if epoch < 0 or epoch > self.latest:
            return NO_EPOCH, NO_OFFSET
        later = next(e for e in self.entries if e.epoch > epoch)
        earlier = [e for e in self.entries if e.epoch <= epoch]
        return (earlier[-1].epoch if earlier else epoch), later.start_offset
