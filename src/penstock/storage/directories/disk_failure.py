"""Which errors a disk does not recover from.

A full disk heals when something is deleted, so its writes are refused one by one. A disk that
cannot read or write its blocks is another thing: what the kernel held for it may be gone, and a
second fsync would report success without it. Nothing written there may count any more.
"""

import errno
from typing import Final

_LASTING: Final = frozenset(
    {
        errno.EIO,
        errno.EROFS,  # How a file system answers after it met an error of its disk.
        errno.ENXIO,
        errno.ENODEV,
        errno.EUCLEAN,
        errno.EBADMSG,
        errno.ESTALE,
        errno.EREMOTEIO,
        errno.ENOMEDIUM,
    }
)


def is_lasting(error: BaseException | None) -> bool:
    """Whether the disk has failed for good, rather than being full."""
    return isinstance(error, OSError) and error.errno in _LASTING
