"""Files with keys and passwords: nobody but their owner may read them, not even for a moment."""

import os
from pathlib import Path

_MODE = 0o600


def write_private(path: Path, text: str | bytes, *, may_replace: bool = False) -> None:
    """Write a file of mode 0600; FileExistsError where there is one that may not be replaced."""
    data = text.encode() if isinstance(text, str) else text
    kind = os.O_TRUNC if may_replace else os.O_EXCL
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | kind | os.O_CLOEXEC, _MODE)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, _MODE)  # One that was there already may have been open to others.
        file.write(data)
