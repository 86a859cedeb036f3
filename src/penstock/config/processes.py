"""How several broker processes of one machine share a row of directories.

    DIR                          of the first process, and of a broker that is alone
    DIR/penstock-metadata.db     what all of them know; in the first of log.dirs
    DIR/penstock-processes/1     of the second process, and so on

So a directory that a broker alone has written can grow: its partitions stay where they are. It
cannot shrink as long as a process that would be left out still has partitions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

METADATA_FILE: Final = "penstock-metadata.db"
PROCESSES: Final = "penstock-processes"


def process_dir(root: Path, number: int) -> Path:
    """Where a process has its partitions; 0 is the first."""
    return root / PROCESSES / str(number) if number else root


def process_count(roots: Sequence[Path]) -> int:
    """How many processes have been at work in the directories; 0: none has."""
    numbers = [number for root in roots for number in _numbers(root)]
    if numbers:
        return max(numbers) + 1
    return int(any((root / "meta.properties").exists() for root in roots))


def left_out(roots: Sequence[Path], count: int) -> Path | None:
    """Of the last process that would not be started and has partitions; None: there is none."""
    found = [
        (number, process_dir(root, number))
        for root in roots
        for number in _numbers(root)
        if number >= count and _has_partitions(process_dir(root, number))
    ]
    return max(found)[1] if found else None


def _has_partitions(directory: Path) -> bool:
    return any(one.is_dir() for one in directory.glob("*-[0-9]*"))


def left_out_sentence(found: Path, count: int) -> str:
    """Why a start with fewer processes is refused, and what can be done."""
    return (
        f"{found} has partitions of a process that {count} would leave out: start with "
        f"--processes {int(found.name) + 1}, or move them to other brokers with "
        "kafka-reassign-partitions first"
    )


def _numbers(root: Path) -> list[int]:
    try:
        names = [one.name for one in (root / PROCESSES).iterdir()]
    except OSError:
        return []
    return sorted(int(name) for name in names if name.isdigit() and int(name))
