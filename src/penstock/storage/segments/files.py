"""The files of a partition's directory: what they are called, and what a crash left among them.

Deleting and compacting go through renames, so an interrupted one shows in the suffixes:

    .deleted   was to be removed after a delay: removed now
    .cleaned   compaction was still writing it: dropped
    .swap      compaction had finished it: takes the place of the segments it was made from

What the segments hold is not looked at here, except to see how far a `.swap` segment reaches.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from penstock.storage.directories.durable_file import sync_directory
from penstock.storage.producers import snapshot as producer_snapshot
from penstock.storage.segments.batch_scan import walk
from penstock.storage.segments.file_slice import OPEN_FILES, LogFile
from penstock.storage.segments.segment import LOG_SUFFIX, SUFFIXES

DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"

_KINDS: Final = (*SUFFIXES, producer_snapshot.SUFFIX)
_NAME: Final = re.compile(r"(\d{20})(\.[a-z]+)(\.[a-z]+)?\Z")

Report = Callable[[str], None]


class SegmentFile(NamedTuple):
    """One file, by the parts of its name."""

    base_offset: int
    kind: str
    state: str  # "" for a file in use.
    size: int
    path: str


def list_files(directory: Path) -> list[SegmentFile]:
    """The files of segments and snapshots in order; others are none of our business."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            match = _NAME.match(entry.name)
            if match is not None and match[2] in _KINDS:
                size = entry.stat().st_size
                found.append(SegmentFile(int(match[1]), match[2], match[3] or "", size, entry.path))
    return sorted(found)


def has_records(directory: Path) -> bool:
    """Whether anything was ever written to the log, whatever it is called by now."""
    return any(file.size for file in list_files(directory) if file.kind == LOG_SUFFIX)


def finish_interrupted(directory: Path, report: Report) -> list[SegmentFile]:
    """Complete or undo what a crash interrupted; the files that are in use now."""
    files = list_files(directory)
    if all(not file.state for file in files):
        return files
    cleaned = [file for file in files if file.state == CLEANED]
    # A swap above an unfinished segment belongs to a replacement that is not complete.
    limit = min((file.base_offset for file in cleaned), default=None)
    swaps = [file for file in files if file.state == SWAP]
    void = [file for file in swaps if limit is not None and file.base_offset >= limit]
    for file in [*cleaned, *void, *(file for file in files if file.state == DELETED)]:
        Path(file.path).unlink()
    if cleaned or void:
        report(f"Dropped {len(cleaned) + len(void)} files of an unfinished cleaning in {directory}")
    _complete_swaps(directory, files, [file for file in swaps if file not in void], report)
    sync_directory(directory)
    return list_files(directory)


def _complete_swaps(
    directory: Path, files: list[SegmentFile], swaps: list[SegmentFile], report: Report
) -> None:
    logs = [file for file in swaps if file.kind == LOG_SUFFIX]
    if logs:
        start = min(file.base_offset for file in logs)
        end = max(_end_offset(file) for file in logs)
        bases = {file.base_offset for file in logs}  # One that nothing is left in ends there, too.
        for file in files:
            if not file.state and (start <= file.base_offset < end or file.base_offset in bases):
                Path(file.path).unlink()
        report(f"Completed the swap of cleaned segments {start} to {end} in {directory}")
    for file in swaps:
        final = file.path.removesuffix(SWAP)
        OPEN_FILES.forget(final)
        Path(file.path).replace(final)


def _end_offset(file: SegmentFile) -> int:
    end = file.base_offset
    for place in walk(LogFile(file.path, os.O_RDONLY), 0, file.size):
        end = place.last_offset + 1
    return end
