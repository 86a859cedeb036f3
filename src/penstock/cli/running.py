"""The processes of this machine, as the tools that stop servers find them: in the process table."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import CommandError


def processes(whose: str) -> Iterator[tuple[int, list[str]]]:
    """Process ids with the words of their command lines; `whose` is named if nobody can look."""
    proc = Path("/proc")
    if not proc.is_dir():
        raise CommandError(f"There is no /proc on this system; stop {whose} by hand.")
    for pid in sorted(int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()):
        try:
            line = (proc / str(pid) / "cmdline").read_bytes()
        except OSError:
            continue  # It ended while we looked.
        yield pid, line.decode(errors="replace").split("\0")


def terminate(pid: int, what: str) -> None:
    """Ask a process to stop; one that is gone has."""
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise CommandError(f"The {what} with process id {pid} belongs to another user.") from error
