"""Whether the machine went down since this broker was last at work.

Linux gives every run of the machine a name. A process that died takes nothing with it: what it
wrote is in the page cache. A machine that went down takes all that was not on disk. So the name is
noted beside the data, and only once the cluster counts on this broker: until then, what an
earlier run lost has not been accounted for (replication: a loss must stay known).
"""

from pathlib import Path
from typing import Final

from penstock.storage.directories.durable_file import replace_file

_NOTE: Final = "penstock-boot-id"  # A file in the first log directory.
_KERNELS: Final = Path("/proc/sys/kernel/random/boot_id")


def present_boot_id() -> str | None:
    """The name of this run of the machine; None: the system does not tell."""
    try:
        return _KERNELS.read_text().strip()
    except OSError:
        return None


def noted_boot_id(directory: Path) -> str | None:
    """The name noted when a broker was last active here; None: there is none."""
    try:
        return (directory / _NOTE).read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def forget_boot_id(directory: Path) -> bool:
    """A disk failed: what was written in this run of the machine may be lost all the same.

    Whether the note is gone.
    """
    try:
        (directory / _NOTE).unlink(missing_ok=True)
    except OSError:
        return False
    return True


def note_boot_id(directory: Path, boot_id: str | None) -> None:
    replace_file(directory / _NOTE, boot_id or "")
