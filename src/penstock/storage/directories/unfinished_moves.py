"""What a crash left of a move between directories: the same partition in two of them.

A copy under way has a name of its own and is dropped at the next start. In the last step it takes
the log's name, and then the log goes; a crash between the two leaves both. The copy bears a mark
until the log is gone, so that it is known which is which. Both are whole, and the log stays: what
was noted of it, such as its high watermark, is in its own directory.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.records.topic_partition import TopicPartition
    from penstock.storage.directories.log_dir import LogDir

MARK: Final = "unfinished-move"


def mark(copy: Path) -> None:
    """Mark a copy: the log that it was copied from may still exist."""
    (copy / MARK).touch()


def unmark(copy: Path) -> None:
    with suppress(OSError):  # While the log is the only one, a mark that stays does no harm.
        (copy / MARK).unlink(missing_ok=True)


def drop_unfinished(dirs: Sequence["LogDir"], report: Callable[[str], None]) -> None:
    """Let go of marked copies whose logs are still there; any other double is not ours to settle.

    Where both are marked an earlier crash came just before a mark was taken off: both are whole.
    """
    homes: dict[TopicPartition, LogDir] = {}
    for found in dirs:
        for partition in tuple(found.found):
            first = homes.setdefault(partition, found)
            if first is found:
                continue
            for copy in (found, first):
                if (copy.found[partition] / MARK).exists():
                    homes[partition] = first if copy is found else found
                    dropped = copy.drop(partition)
                    report(f"A crash left a copy of {partition} behind; it is {dropped} now")
                    break
