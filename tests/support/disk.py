"""A small disk that a test may fill: a tmpfs of its own, where the machine lets us mount one."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def small_disk(directory: Path, *, size_bytes: int) -> Iterator[Path]:
    """The directory as a file system of this size; skips the test where that cannot be had."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk takes root")
    directory.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "penstock-test", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no small disk to be had: {done.stderr.strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def leave_no_byte(directory: Path) -> Path:
    """Fill the disk to its last byte; the file to remove when there shall be room again."""
    ballast = directory / "ballast"
    for size in (1 << 16, 512):
        with suppress(OSError), ballast.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(size))
    return ballast


def free_bytes(directory: Path) -> int:
    """What may still be written to the disk."""
    volume = os.statvfs(directory)
    return volume.f_bavail * volume.f_frsize
