"""Waiting for a database to send something."""

import math
import select
from typing import Protocol


class HasFileno(Protocol):
    """A socket, or a cursor that stands for one."""

    def fileno(self) -> int: ...


def has_arrived(source: HasFileno, wait_s: float) -> bool:
    """Whether something is there to be read within `wait_s`, the end of the connection included.

    By poll(): select() refuses descriptors from 1,024 on, which a worker with many tasks has.
    """
    poller = select.poll()
    poller.register(source.fileno(), select.POLLIN)
    return bool(poller.poll(math.ceil(wait_s * 1000)))
